// Rules on trial, and what to think of them.
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { open, pageTest } from "./page.mjs";

const fleet = await startFleet();
const steadyFleet = await startFleet({ policy: "version: 1\nrules:\n  - { name: all, limits: [10/min] }\n" });
after(() => Promise.all([fleet, steadyFleet].map((one) => one.stop())));

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
