// Rules on trial.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, headline, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
const plainFleet = await startFleet({ policy: "version: 1\nrules:\n  - { name: all, limits: [10/min] }\n" });
const comparedPolicy = `
version: 1
rules:
  - { name: orders, match: { path: /orders }, limits: [2/h], distributed: shadow }
`;
const comparedFleet = await startFleet({ policy: comparedPolicy });
after(() => Promise.all([fleet, plainFleet, comparedFleet].map((each) => each.stop())));

pageTest("shows the percentage that a shadow rule would have refused", {}, async (page) => {
  await open(page, fleet.first);
  const shadow = page.locator(".trial").filter({ hasText: "shadow" });
  const next = page.locator(".trial").filter({ hasText: "next limits" });
  for (const trial of [shadow, next]) {
    await trial.filter({ hasText: "No traffic yet" }).waitFor();
    assert.doesNotMatch(await trial.textContent(), /safe|would have refused|set mode/, "no advice without traffic");
  }
  for (let times = 0; times < 4; times += 1) await fleet.check(fleet.second, { client: "c1", path: "/trial" });
  await shadow.filter({ hasText: "2 of 4 checked" }).filter({ hasText: "50 %" }).waitFor();
  await shadow.filter({ hasText: "The rule refuses nothing now; mode: enforce would have refused 2 (50 %)." }).waitFor();
  await next.filter({ hasText: "3 of 4 checked" }).filter({ hasText: "75 %" }).waitFor();
  const added = "The live limits refused 0 (0 %); the next limits would have refused 3 (75 %), at least 3 more.";
  await next.filter({ hasText: added }).waitFor();
});

pageTest("shows counters of a single node with its name", {}, async (page) => {
  for (let times = 0; times < 2; times += 1) {
    await comparedFleet.check(comparedFleet.first, { client: "c1", path: "/orders" });
  }
  await comparedFleet.check(comparedFleet.second, { client: "c1", path: "/orders" });
  await open(page, comparedFleet.first);
  await explain(page, "client=c1 path=/orders");
  await headline(page, /Refused now by rule orders/);
  const counters = page.getByRole("table", { name: "Counters of this client" }).locator("tbody tr");
  await counters.filter({ hasText: "on web-1" }).filter({ hasText: "2 of 2" }).waitFor();
  await page.locator("#blocks-form button[type=submit]").click();
  await row(page, "#blocks-list", "c1", "orders", "on web-1").waitFor();
});

pageTest("explains how to start a trial", {}, async (page) => {
  await open(page, plainFleet.first);
  await page
    .locator("#rollout-rules")
    .filter({ hasText: "mode: shadow" })
    .filter({ hasText: "next: { limits: [5/min] }" })
    .waitFor();
  await page
    .locator("#no-traffic")
    .filter({ hasText: `curl --json '{"key":"user:1"}' ${plainFleet.first}/check` })
    .waitFor();
  await page.locator("#refused-table").filter({ hasText: "No request was refused in the last 5 minutes." }).waitFor();
});
