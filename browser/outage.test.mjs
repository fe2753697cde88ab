// Outage of Redis and recovery.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { open, pageTest, until } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

pageTest("shows an outage of Redis and its end", { expected: [/503/] }, async (page) => {
  await open(page, fleet.first);
  await page.locator("#health-message").filter({ hasText: "No problems detected" }).waitFor();

  await fleet.stopRedis();
  const waitForBoth = (degraded) =>
    Promise.all(
      [fleet.first, fleet.second].map((url) =>
        until(
          () => fleet.check(url, { client: "c1" }),
          (decision) => decision.degraded === degraded,
        ),
      ),
    );
  await waitForBoth(true);
  const outage = page
    .locator("#health.bad #health-message")
    .filter({ hasText: "Redis is unreachable" });
  await until(
    async () => {
      await fleet.check(fleet.first, { client: "c1" });
      return outage.isVisible();
    },
    (shown) => shown,
  );
  await page.locator(".tile.bad").filter({ hasText: "Redis down" }).waitFor();
  await page.locator(".tile.warn").filter({ hasText: "Degraded" }).waitFor();
  await page.locator("#scope").filter({ hasText: "data of this node only" }).waitFor();
  await page.locator(".tile.warn").filter({ hasText: "Nodes up" }).filter({ hasText: "1 of 2" }).waitFor();
  await page.locator("#blocks-prefix").fill("no-such-key");
  await page.locator("#blocks-form button").click();
  const failure = page.locator("#blocks-list").getByText("Loading failed");
  await failure.waitFor();
  assert.equal(await page.getByText("No key is refused now.").isVisible(), false, "the list is unknown");

  await fleet.restartRedis();
  await waitForBoth(false);
  await page.locator("#health.ok #health-message").filter({ hasText: "No problems detected" }).waitFor();
  await page.locator("#scope").filter({ hasText: "data of all 2 nodes" }).waitFor();
  assert.equal(await page.locator("#connection").textContent(), "live");
  await page.getByText("No key is refused now.").waitFor();
  assert.equal(await failure.count(), 0, "the failed list was loaded");
});
