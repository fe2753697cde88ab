// On a narrow screen nothing is out of reach to the side.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { headline, logIn, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

// As long as keys may be; one for each width, since the test changes its limits.
const longKey = (width) => `${width}${"w".repeat(1021)}`;

const fits = async (page) => {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= window, `${wide} px on a screen of ${window}`);
};

for (const width of [360, 390]) {
  pageTest(
    `no sideways scrolling at ${width} px, whatever is shown`,
    { viewport: { width, height: 740 }, hasTouch: true },
    async (page) => {
      for (let times = 0; times < 3; times += 1)
        await fleet.check(fleet.second, { client: longKey(width), path: "/once" });
      await open(page, fleet.first);
      await fits(page);
      await logIn(page, { name: "kim" });
      await page.locator("#override-form").waitFor();
      const refused = row(page, "#refused-table", `${width}wwww`);
      await refused.getByRole("button", { name: /^all/ }).click();
      await refused.getByRole("button", { name: /^Why/ }).click();
      await headline(page, /Refused now by rule once/);
      await page.locator("#blocks-form button").click();
      await row(page, "#blocks-list", `${width}wwww`).waitFor();
      await page.locator("#override-client").fill(longKey(width));
      await page.locator("#override-limits").fill("20/min 200/h 2000/d");
      await page.locator("#override-reason").fill("r".repeat(1000));
      await page.locator("#override-form button[type=submit]").click();
      await row(page, "#overrides-list", `${width}wwww`).waitFor();
      await row(page, "#audit-list", `${width}wwww`).first().waitFor();
      await page.locator("#policy summary").click();
      await row(page, "#policy-rules", "external-api").waitFor();
      await fits(page);
    },
  );
}
