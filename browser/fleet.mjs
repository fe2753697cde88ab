// A Redis server and two nodes that share it, started for a test file and stopped after it. The nodes use free ports;
// Redis listens on a socket in a temporary directory.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BINARY = process.env.TOLLGATE_BIN;
const REDIS = process.env.TOLLGATE_REDIS_SERVER ?? "redis-server";
export const ADMIN_TOKEN = "admin-token-of-the-browser-tests-0123456789";
export const READ_TOKEN = "read-token-of-the-browser-tests-0123456789";

export const POLICY = `
version: 1
defaults: { limit: 100/min }
rules:
  - { name: external-api, match: { path: /api/external/** }, limits: [10/min, 100/h], algorithm: token_bucket }
  - { name: once, match: { path: /once }, limits: [1/h] }
  - { name: trial, match: { path: /trial }, limits: [2/min], mode: shadow, next: { limits: [1/min] } }
`;

// Starts a program and waits until `findReady(output)` returns a value.
const start = (program, args, env, findReady) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const handleData = (data) => {
      output += data;
      const ready = findReady(output);
      if (ready) resolve({ child, ready });
    };
    child.stdout.on("data", handleData);
    child.stderr.on("data", handleData);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${program} exited with ${code}: ${output}`)));
  });

const stop = (child, signal) =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", resolve);
    child.kill(signal);
  });

const startRedis = async (directory) => {
  const args = ["--port", "0", "--unixsocket", "redis.sock", "--dir", directory, "--save", "", "--appendonly", "no"];
  const { child } = await start(REDIS, args, {}, (output) => output.includes("eady to accept connections"));
  return child;
};

// The Redis timeout is long, so that a busy machine does not look like an outage.
const startNode = async (id, directory, env, address = "127.0.0.1:0") => {
  const args = [
    "serve",
    "--http",
    address,
    "--resp",
    "127.0.0.1:0",
    "--node-id",
    id,
    "--redis",
    `unix://${directory}/redis.sock`,
    "--policy",
    join(directory, "policy.yaml"),
    "--report-ms",
    "500",
    "--probe-ms",
    "100",
    "--redis-timeout-ms",
    "5000",
  ];
  const listening = /listening on (http:\S+)\n(?:.*\n)*?listening on resp:\/\/(\S+)\n/;
  const { child, ready } = await start(BINARY, args, env, (output) => listening.exec(output));
  return { id, child, url: ready[1], resp: ready[2] };
};

const post = async (url, body) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
};

// Sends a check over RESP and waits for its reply.
const checkOverResp = (address, client) =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(`tcp://${address}`);
    const socket = connect(Number(port), hostname, () => socket.write(`TOLLGATE.CHECK client=${client}\r\n`));
    socket.on("error", reject);
    socket.once("data", (reply) => {
      socket.end();
      resolve(String(reply));
    });
  });

// Starts a fleet. Returns the URLs of its nodes and functions to send checks and to stop and restart parts of it.
export const startFleet = async ({ policy = POLICY, env = { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN } } = {}) => {
  const directory = mkdtempSync(join(tmpdir(), "tollgate-browser-"));
  writeFileSync(join(directory, "policy.yaml"), policy);
  let redis = await startRedis(directory);
  const nodes = await Promise.all(["web-1", "web-2"].map((id) => startNode(id, directory, env)));
  const [first, second] = nodes.map(({ url }) => url);
  return {
    first,
    second,
    check: (url, facts) => post(`${url}/check`, { facts }),
    checkOverResp: (client) => checkOverResp(nodes[1].resp, client),
    stopRedis: () => stop(redis, "SIGKILL"),
    restartRedis: async () => {
      redis = await startRedis(directory);
    },
    killNode: (index) => stop(nodes[index].child, "SIGKILL"),
    writePolicy: (text) => writeFileSync(join(directory, "policy.yaml"), text),
    // Stops the first node and starts one with another environment at the same address.
    replaceFirst: async (newEnv) => {
      await stop(nodes[0].child, "SIGTERM");
      nodes[0] = await startNode(nodes[0].id, directory, newEnv, new URL(first).host);
    },
    stop: async () => {
      await Promise.all(nodes.map(({ child }) => stop(child, "SIGTERM")));
      await stop(redis, "SIGKILL");
      rmSync(directory, { recursive: true });
    },
  };
};
