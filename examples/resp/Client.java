// Tollgate with Jedis: redis.clients:jedis. Not run by our tests.
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;

public class Client {
    public static void main(String[] arguments) {
        ProtocolCommand throttle = () -> "CL.THROTTLE".getBytes();
        try (Jedis client = new Jedis("127.0.0.1", 6380)) {
            // 16 at once, then 30 per 60 seconds.
            List<?> reply = (List<?>) client.sendCommand(throttle, "user123", "15", "30", "60");
            System.out.println("limited=" + reply.get(0) + " remaining=" + reply.get(2) + " retry_after=" + reply.get(3));
        }
    }
}
