// Tollgate with go-redis: go get github.com/redis/go-redis/v9. Not run by our tests.
package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6380"})
	// 16 at once, then 30 per 60 seconds.
	reply, err := client.Do(context.Background(), "CL.THROTTLE", "user123", 15, 30, 60).Int64Slice()
	if err != nil {
		panic(err)
	}
	fmt.Printf("limited=%d remaining=%d retry_after=%d\n", reply[0], reply[2], reply[3])
}
