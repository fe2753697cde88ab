// Leases of a node in the table of nodes, and their part of a limit in "Why?".
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, open, pageTest, row } from "./page.mjs";

const POLICY = `
version: 1
rules:
  - { name: feed, per: [client], algorithm: token_bucket, limits: [{ rate: 1000000/d, lease: 500 }] }
`;
const fleet = await startFleet({ policy: POLICY });
after(() => fleet.stop());

// Checks a client on the first node until the test ends.
const startTraffic = (client) => {
  let isStopped = false;
  const run = async () => {
    while (!isStopped) await fleet.check(fleet.first, { client });
  };
  const running = run();
  return async () => {
    isStopped = true;
    await running;
  };
};

pageTest("a node shows its leases and their share of the checks", {}, async (page) => {
  const stopTraffic = startTraffic("c1");
  try {
    await open(page, fleet.second);
    await row(page, "#nodes-table", "web-1", /connected[1-9]\d* leases?, \d+ % of checks/).waitFor();
    const idle = await row(page, "#nodes-table", "web-2", "connected").textContent();
    assert.doesNotMatch(idle, /lease/, "a node without leases does not mention them");
  } finally {
    await stopTraffic();
  }
});

pageTest("Why? shows what the node has leased of a limit", {}, async (page) => {
  const stopTraffic = startTraffic("c2");
  try {
    await open(page, fleet.first);
    const leased = row(page, "#why-details", "feed", /[1-9]\d* of the used quota leased by this node/);
    // A lease may just have ended when a slow machine explains.
    while ((await leased.count()) === 0) {
      await explain(page, "client=c2");
      await page.locator("#why-details").getByText("Limits of this request").waitFor();
    }
  } finally {
    await stopTraffic();
  }
});
