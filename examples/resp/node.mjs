// Tollgate with ioredis: npm install ioredis. Usage: node node.mjs HOST PORT [TOKEN]
import Redis from "ioredis";

const [host, port, password] = process.argv.slice(2);
const client = new Redis({ host, port: Number(port), password });

// 16 at once, then 30 per 60 seconds.
const [limited, limit, remaining, retryAfter, resetAfter] = await client.call("CL.THROTTLE", "user123", 15, 30, 60);
console.log(`limited=${limited} limit=${limit} remaining=${remaining} retry_after=${retryAfter} reset_after=${resetAfter}`);

// The policy of the server decides.
const [allowed, , left] = await client.call("TOLLGATE.CHECK", "client=user123", "path=/search");
console.log(`allowed=${allowed} remaining=${left}`);

client.disconnect();
