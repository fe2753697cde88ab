// A Redis and nodes that share it, started for a test and ended with it. Ports are whichever are free; Redis listens
// on a socket in a directory of its own.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

const started = (program, args, env, isReady) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const listen = (data) => {
      said += data;
      const found = isReady(said);
      if (found) resolve({ child, found });
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${program} ended with ${code}: ${said}`)));
  });

const ended = (child, signal) =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", resolve);
    child.kill(signal);
  });

const startRedis = async (directory) => {
  const args = ["--port", "0", "--unixsocket", "redis.sock", "--dir", directory, "--save", "", "--appendonly", "no"];
  const { child } = await started(REDIS, args, {}, (said) => said.includes("eady to accept connections"));
  return child;
};

// Patient with Redis, so that a busy machine is not taken for a lost one.
const startNode = async (id, directory, env, address = "127.0.0.1:0") => {
  const args = [
    "serve",
    "--http",
    address,
    "--node-id",
    id,
    "--redis",
    `unix://${directory}/redis.sock`,
    "--policy",
    join(directory, "policy.yaml"),
    "--heartbeat-ms",
    "500",
    "--probe-ms",
    "100",
    "--redis-timeout-ms",
    "5000",
  ];
  const { child, found } = await started(BINARY, args, env, (said) => /listening on (http:\S+)\n/.exec(said));
  return { id, child, url: found[1] };
};

const post = async (url, body) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
};

// A fleet: its nodes' addresses, ways to ask them, and to take Redis away.
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
    loseRedis: () => ended(redis, "SIGKILL"),
    returnRedis: async () => {
      redis = await startRedis(directory);
    },
    // The first node ends, and another begins in its place.
    replaceFirst: async (others) => {
      await ended(nodes[0].child, "SIGTERM");
      nodes[0] = await startNode(nodes[0].id, directory, others, new URL(first).host);
    },
    stop: async () => {
      await Promise.all(nodes.map(({ child }) => ended(child, "SIGTERM")));
      await ended(redis, "SIGKILL");
      rmSync(directory, { recursive: true });
    },
  };
};
