// Use without a mouse.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { headline, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

// Presses Tab until an element that matches the selector has the focus.
const tabTo = async (page, selector) => {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
  }
  assert.fail(`Tab does not reach ${selector}`);
};

pageTest("explains a request by keyboard", {}, async (page) => {
  await open(page, fleet.first);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await tabTo(page, "#why-input");
  await page.keyboard.type("client=c1 path=/api/external/orders");
  await page.keyboard.press("Enter");
  await headline(page, /Allowed now, 9 of 10 left after this request \(rule external-api, limit 10\/min\)/);
  assert.equal(await page.locator("#why-headline").getAttribute("role"), "status");
  assert.equal(await page.evaluate(() => document.activeElement.id), "why-input");
});

pageTest("a focused row does not move while the table updates", {}, async (page) => {
  await fleet.check(fleet.second, { client: "focused", path: "/once" });
  await fleet.check(fleet.second, { client: "focused", path: "/once" });
  await open(page, fleet.first);
  await row(page, "#refused-table", "focused", "≥ 1").waitFor();
  await tabTo(page, "#refused-table tbody button");
  // Another key becomes the most refused one and would move to the first row.
  for (let times = 0; times < 9; times += 1) await fleet.check(fleet.second, { client: "busy", path: "/once" });
  await row(page, "#refused-table", "busy", "≥ 8").waitFor();
  const first = page.locator("#refused-table tbody tr").first();
  assert.match(await first.textContent(), /^focused/, "the focused row does not move");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Why is focused refused?");
  await page.keyboard.press("Enter");
  await headline(page, /Refused now by rule once/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "why-result");
  await first.filter({ hasText: "busy" }).waitFor();
});

pageTest("arrow keys select seconds of a chart", {}, async (page) => {
  await fleet.check(fleet.first, { client: "c2" });
  await open(page, fleet.first);
  const chart = page.getByRole("slider", { name: "Decisions per second" });
  await page.waitForFunction(() => Number(document.querySelector("#charts canvas")?.getAttribute("aria-valuemax")) > 1);
  await tabTo(page, "#charts canvas");
  await page.keyboard.press("End");
  const newest = await chart.getAttribute("aria-valuetext");
  assert.match(newest, /^\d\d:\d\d:\d\d: allowed [\d.<]+, refused [\d.<]+(;|$)/);
  await page.keyboard.press("Home");
  assert.notEqual(await chart.getAttribute("aria-valuetext"), newest);
  assert.equal(await chart.getAttribute("aria-valuenow"), "0");
});
