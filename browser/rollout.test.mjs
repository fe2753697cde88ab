// Rules on trial, and what to think of them.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { ask, headline, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
const steadyFleet = await startFleet({ policy: "version: 1\nrules:\n  - { name: all, limits: [10/min] }\n" });
const movingPolicy = `
version: 1
rules:
  - { name: orders, match: { path: /orders }, limits: [2/h], distributed: shadow }
`;
const movingFleet = await startFleet({ policy: movingPolicy });
after(() => Promise.all([fleet, steadyFleet, movingFleet].map((one) => one.stop())));

pageTest("what a rule in shadow would have refused, as a share of what it checked", {}, async (page) => {
  await open(page, fleet.first);
  const shadow = page.locator(".trial").filter({ hasText: "shadow" });
  const next = page.locator(".trial").filter({ hasText: "next limits" });
  await shadow.filter({ hasText: "Nothing would have been refused" }).waitFor();
  for (let times = 0; times < 4; times += 1) await fleet.check(fleet.second, { client: "c1", path: "/trial" });
  await shadow.filter({ hasText: "2 of 4 checked" }).filter({ hasText: "50 %" }).waitFor();
  await shadow.filter({ hasText: "Enforced, it would have refused 50 % of requests." }).waitFor();
  await next.filter({ hasText: "3 of 4 checked" }).filter({ hasText: "75 %" }).waitFor();
});

pageTest("what a node counts by itself is told with its name, beside what is tried for all", {}, async (page) => {
  for (let times = 0; times < 2; times += 1) {
    await movingFleet.check(movingFleet.first, { client: "c1", path: "/orders" });
  }
  await movingFleet.check(movingFleet.second, { client: "c1", path: "/orders" });
  await open(page, movingFleet.first);
  await ask(page, "client=c1 path=/orders");
  await headline(page, /Refused now by rule orders/);
  const counters = page.getByRole("table", { name: "Counters in use" }).locator("tbody tr");
  await counters.filter({ hasText: "on web-1" }).filter({ hasText: "2 of 2" }).waitFor();
  assert.equal(await counters.count(), 2);
  await page.locator("#blocks-form button[type=submit]").click();
  await row(page, "#blocks-list", "c1", "orders", "on web-1").waitFor();
});

pageTest("without a trial the page says how to begin one", {}, async (page) => {
  await open(page, steadyFleet.first);
  await page
    .locator("#rollout-rules")
    .filter({ hasText: "mode: shadow" })
    .filter({ hasText: "next: { limits: [5/min] }" })
    .waitFor();
  await page
    .locator("#no-traffic")
    .filter({ hasText: `curl --json '{"key":"user:1"}' ${steadyFleet.first}/check` })
    .waitFor();
  await page.locator("#refused-table").filter({ hasText: "Nobody was refused in the last five minutes." }).waitFor();
});
