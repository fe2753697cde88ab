// All of it without a mouse.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { headline, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

// Presses Tab until something of this kind has the focus.
const tabTo = async (page, selector) => {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
  }
  assert.fail(`no Tab leads to ${selector}`);
};

pageTest("tab to the search, type, enter, read", {}, async (page) => {
  await open(page, fleet.first);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await tabTo(page, "#why-input");
  await page.keyboard.type("client=c1 path=/api/external/orders");
  await page.keyboard.press("Enter");
  await headline(page, /Allowed now, 9 of 10 left after it \(by rule external-api, limit 60s\)/);
  assert.equal(await page.locator("#why-headline").getAttribute("role"), "status");
  assert.equal(await page.evaluate(() => document.activeElement.id), "why-input");
});

pageTest("a row that has the focus stays where it is while figures change", {}, async (page) => {
  await fleet.check(fleet.second, { client: "held", path: "/once" });
  await fleet.check(fleet.second, { client: "held", path: "/once" });
  await open(page, fleet.first);
  await row(page, "#refused-table", "held", "≥ 1").waitFor();
  await tabTo(page, "#refused-table button");
  // Another becomes the most refused, and would take the first place.
  for (let times = 0; times < 9; times += 1) await fleet.check(fleet.second, { client: "loud", path: "/once" });
  await row(page, "#refused-table", "loud", "≥ 8").waitFor();
  const first = page.locator("#refused-table tbody tr").first();
  assert.match(await first.textContent(), /^held/, "nothing moves under the hands");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Why is held refused?");
  await page.keyboard.press("Enter");
  await headline(page, /Refused now by rule once/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "why-result");
  await first.filter({ hasText: "loud" }).waitFor();
});

pageTest("charts are read by arrow keys", {}, async (page) => {
  await fleet.check(fleet.first, { client: "c2" });
  await open(page, fleet.first);
  const chart = page.getByRole("slider", { name: "Decisions a second, by the second" });
  await page.waitForFunction(() => Number(document.querySelector("canvas").getAttribute("aria-valuemax")) > 1);
  await tabTo(page, "canvas");
  await page.keyboard.press("End");
  const newest = await chart.getAttribute("aria-valuetext");
  assert.match(newest, /^\d\d:\d\d:\d\d: allowed [\d.<]+, refused [\d.<]+$/);
  await page.keyboard.press("Home");
  assert.notEqual(await chart.getAttribute("aria-valuetext"), newest);
  assert.equal(await chart.getAttribute("aria-valuenow"), "0");
});
