// Narrow screens need no horizontal scrolling.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { headline, logIn, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

// A key of the maximum length; one per width, because the test sets an override for it.
const longKey = (width) => `${width}${"w".repeat(1021)}`;

const assertFits = async (page) => {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= window, `content of ${wide} px on a screen of ${window} px`);
};

for (const width of [360, 390]) {
  pageTest(
    `no horizontal scrolling at ${width} px`,
    { viewport: { width, height: 740 }, hasTouch: true },
    async (page) => {
      for (let times = 0; times < 3; times += 1)
        await fleet.check(fleet.second, { client: longKey(width), path: "/once" });
      await open(page, fleet.first);
      await assertFits(page);
      await logIn(page, { name: "kim" });
      await page.locator("#override-form").waitFor();
      const refused = row(page, "#refused-table", `${width}wwww`);
      await refused.getByRole("button", { name: /^all/ }).click();
      await refused.getByRole("button", { name: /^Why/ }).click();
      await headline(page, /Refused now by rule once/);
      await page.locator("#blocks-form button").click();
      await row(page, "#blocks-list", `${width}wwww`).waitFor();
      await page.locator("#override-client").fill(longKey(width));
      await page.locator("#override-rule").selectOption("once");
      await page.locator("#override-limits").fill("20/min 200/h 2000/d");
      await page.locator("#override-reason").fill("r".repeat(1000));
      await page.locator("#override-form button[type=submit]").click();
      await page.getByRole("button", { name: "Set override", exact: true }).click();
      await row(page, "#overrides-list", `${width}wwww`).waitFor();
      await row(page, "#audit-list", `${width}wwww`).first().waitFor();
      await page.locator("#policy summary").click();
      await row(page, "#policy-rules", "external-api").waitFor();
      await assertFits(page);
    },
  );
}
