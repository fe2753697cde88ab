// Accessibility of every view, checked by axe-core, on desktop and phone, light and dark.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, headline, logIn, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const violations = async (page) => {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
};

const VIEWS = [
  { name: "desktop, light", colorScheme: "light", viewport: { width: 1280, height: 900 } },
  { name: "phone, dark", colorScheme: "dark", viewport: { width: 390, height: 844 } },
];
for (const [nth, { name, ...options }] of VIEWS.entries()) {
  pageTest(`axe finds no violation (${name})`, options, async (page) => {
    const client = `c${nth}`;
    for (let times = 0; times < 3; times += 1) await fleet.check(fleet.second, { client, path: "/once" });
    await fleet.check(fleet.second, { client, path: "/trial" });
    await open(page, fleet.first);
    await logIn(page, { name: "kim" });
    await row(page, "#refused-table", client).waitFor();
    await row(page, "#by-rule-table", "once").waitFor();
    await row(page, "#events-list", "node joined").first().waitFor();
    await page.locator("#policy summary").click();
    await page.locator("#blocks-form button").click();
    await row(page, "#blocks-list", client).waitFor();
    await explain(page, client);
    await headline(page, /Refused now by rule once/);
    await page.getByRole("button", { name: "Set override…" }).click();
    await page.locator("#override-limits").fill("5/h");
    await page.locator("#override-form button[type=submit]").click();
    await row(page, "#override-preview", "once").waitFor();
    assert.deepEqual(await violations(page), []);
    await explain(page, "GET /once");
    await headline(page, /Rules for this route/);
    assert.deepEqual(await violations(page), []);
  });
}
