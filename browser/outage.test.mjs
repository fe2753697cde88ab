// Redis goes, and comes back.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { open, pageTest, until } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

pageTest("a lost Redis is shown, and that it is back", { expected: [/503/] }, async (page) => {
  await open(page, fleet.first);
  await page.locator("#health-sentence").filter({ hasText: "All well" }).waitFor();

  await fleet.loseRedis();
  const bothSay = (degraded) =>
    Promise.all(
      [fleet.first, fleet.second].map((url) =>
        until(
          () => fleet.check(url, { client: "c1" }),
          (answer) => answer.degraded === degraded,
        ),
      ),
    );
  await bothSay(true);
  const lost = page
    .locator("#health.bad #health-sentence")
    .filter({ hasText: "Redis is lost: nodes decide by their share of each limit" });
  await until(
    async () => {
      await fleet.check(fleet.first, { client: "c1" });
      return lost.isVisible();
    },
    (shown) => shown,
  );
  await page.locator(".tile.bad").filter({ hasText: "Redis lost" }).waitFor();
  await page.locator(".tile.warn").filter({ hasText: "Degraded" }).waitFor();
  await page.locator("#scope").filter({ hasText: "this node alone" }).waitFor();
  await page.locator(".tile.warn").filter({ hasText: "Nodes up" }).filter({ hasText: "1 of 2" }).waitFor();
  await page.locator("#blocks-prefix").fill("nobody");
  await page.locator("#blocks-form button").click();
  const unread = page.locator("#blocks-list").getByText("It could not be read");
  await unread.waitFor();
  assert.equal(await page.getByText("Nobody is refused now.").isVisible(), false, "nobody knows");

  await fleet.returnRedis();
  await bothSay(false);
  await page.locator("#health.ok #health-sentence").filter({ hasText: "All well" }).waitFor();
  await page.locator("#scope").filter({ hasText: "the whole fleet, 2 nodes" }).waitFor();
  assert.equal(await page.locator("#connection").textContent(), "live");
  await page.getByText("Nobody is refused now.").waitFor();
  assert.equal(await unread.count(), 0, "what could not be read is read");
});
