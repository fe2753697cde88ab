# Tollgate with redis-rb: gem install redis. Not run by our tests.
require "redis"

client = Redis.new(host: "127.0.0.1", port: 6380)
# 16 at once, then 30 per 60 seconds.
limited, _limit, remaining, retry_after, _reset_after = client.call("CL.THROTTLE", "user123", 15, 30, 60)
puts "limited=#{limited} remaining=#{remaining} retry_after=#{retry_after}"
