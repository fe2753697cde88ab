// Keys are untrusted. Every view shows them as text.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { headline, logIn, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const MARKUP = "<img src=x onerror=window.hacked=1>";
const LONG = `${"k".repeat(1018)}<b>zé`;
// Hostile keys, and the text that must be visible for each.
const KEYS = [
  { name: "a key with markup", key: MARKUP, visible: MARKUP },
  {
    name: "a key with a right-to-left mark",
    key: "user\u202e\u200fgpj.exe\u0007",
    visible: "userU+202EU+200Fgpj.exeU+0007",
  },
  { name: "a key of 1 KiB", key: LONG, visible: "k".repeat(28) },
];

// No part of a key became an element, a script or a request.
const assertIsText = async (page) => {
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img").count(), 1, "only the icon of the page");
  assert.equal(await page.locator("main b:text-is('zé')").count(), 0);
};

// The key is isolated with its own writing direction.
const waitForKey = async (page, place, visible) => {
  const shown = page.locator(`${place} bdi[dir=auto]`).filter({ hasText: visible }).first();
  await shown.waitFor();
  assert.equal(await shown.evaluate((node) => getComputedStyle(node).unicodeBidi), "isolate");
};

for (const { name, key, visible } of KEYS) {
  pageTest(`${name} is shown as text in every view`, {}, async (page) => {
    for (let times = 0; times < 3; times += 1) await fleet.check(fleet.second, { client: key, path: "/once" });
    await open(page, fleet.first);
    await logIn(page, { name: key.slice(0, 60) });

    await waitForKey(page, "#refused-table", visible);
    await row(page, "#refused-table", visible).getByRole("button", { name: /^Why/ }).click();
    await headline(page, /Refused now by rule once/);
    await waitForKey(page, ".query", visible);

    await page.locator("#blocks-form button").click();
    await waitForKey(page, "#blocks-list", visible);

    await page.locator("#why-details").getByRole("button", { name: "Set override…" }).click();
    await page.locator("#override-limits").fill("7/h");
    await page.locator("#override-reason").fill(key.slice(0, 900));
    await page.locator("#override-form button[type=submit]").click();
    await page.getByRole("button", { name: "Set override", exact: true }).click();
    await waitForKey(page, "#overrides-list", visible);
    await waitForKey(page, "#audit-list", visible);
    await assertIsText(page);
  });
}

pageTest(
  "a long key is truncated and can be expanded and copied",
  { permissions: ["clipboard-read", "clipboard-write"] },
  async (page) => {
    await fleet.check(fleet.second, { client: LONG, path: "/once" });
    await fleet.check(fleet.second, { client: LONG, path: "/once" });
    await open(page, fleet.first);
    const shown = row(page, "#refused-table", "k".repeat(28));
    await shown.getByRole("button", { name: "all 1023" }).click();
    await shown.filter({ hasText: LONG }).waitFor();
    await shown.getByRole("button", { name: "Copy" }).click();
    await shown.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), LONG);
  },
);
