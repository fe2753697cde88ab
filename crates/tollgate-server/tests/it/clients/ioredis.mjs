// Calls Tollgate with ioredis and prints the replies. Usage: node ioredis.mjs HOST PORT VERSION [TOKEN]
import Redis from "ioredis";

const [host, port, version, token] = process.argv.slice(2);

/** Connects; fails if the server does not accept the password, and does not retry. `onError` receives the reason. */
async function connect(password, onError) {
  const options = { host, port: Number(port), protocol: Number(version), password, lazyConnect: true, retryStrategy: null };
  const client = new Redis(options);
  client.on("error", onError);
  await client.connect();
  return client;
}

const show = (name, ...values) => console.log(name, ...values);

const client = await connect(token, (error) => { throw error; });
show("version", /\bresp=(\d)/.exec(await client.client("INFO"))[1]);
show("throttle", ...(await client.call("CL.THROTTLE", "user123", 15, 30, 60)));
for (let n = 0; n < 4; n++) {
  const [allowed, limit, remaining, retryAfter, resetAfter, rule, name] =
    await client.call("TOLLGATE.CHECK", "client=user123", "path=/search");
  show("check", allowed, limit, remaining, Number(retryAfter > 0), Number(resetAfter > 0), rule, name);
}

const pipeline = client.pipeline();
for (let n = 0; n < 50; n++) {
  pipeline.echo(n);
  pipeline.call("CL.THROTTLE", "pipeline", 49, 1, 86400);
}
const replies = (await pipeline.exec()).map(([error, reply]) => {
  if (error) throw error;
  return Array.isArray(reply) ? reply[2] : reply;
});
show("pipeline", ...replies);

const remaining = [];
for (const bytes of [[0xff, 0, 13, 10], [0xff, 0, 13, 10], [0xfe, 0, 13, 10]]) {
  remaining.push((await client.call("CL.THROTTLE", Buffer.from(bytes), 15, 1, 86400))[2]);
}
show("binary", ...remaining);

for (const [name, password] of token ? [["no token", undefined], ["wrong token", "wrong"]] : []) {
  let reason;
  try {
    const other = await connect(password, (error) => { reason ??= error; });
    await other.call("CL.THROTTLE", "user123", 15, 30, 60);
  } catch (error) {
    // The error of a command may only be that the connection is closed.
    show(name, (reason ?? error).message);
  }
}
await client.get("user123").catch((error) => show("unknown", error.message));
client.disconnect();
