// Keys are text of others. In every view they are shown as text, whatever they hold.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { headline, logIn, open, pageTest, row } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const MARKUP = "<img src=x onerror=window.hacked=1>";
const LONG = `${"k".repeat(1018)}<b>zé`;
// What each is, and how a part of it must read.
const KEYS = [
  { name: "markup", key: MARKUP, reads: MARKUP },
  { name: "a right-to-left mark", key: "user\u202e\u200fgpj.exe\u0007", reads: "userU+202EU+200Fgpj.exeU+0007" },
  { name: "1 KiB", key: LONG, reads: "k".repeat(56) },
];

// Nothing of a key became an element, ran, or was asked for.
const holdsAsText = async (page) => {
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img").count(), 1, "only the page's own picture");
  assert.equal(await page.locator("main b:text-is('zé')").count(), 0);
};

// Where a key stands, it is set apart, in its own direction.
const shownIn = async (page, place, reads) => {
  const shown = page.locator(`${place} bdi[dir=auto]`).filter({ hasText: reads }).first();
  await shown.waitFor();
  assert.equal(await shown.evaluate((node) => getComputedStyle(node).unicodeBidi), "isolate");
};

for (const { name, key, reads } of KEYS) {
  pageTest(`${name} is text wherever a key is shown`, {}, async (page) => {
    for (let times = 0; times < 3; times += 1) await fleet.check(fleet.second, { client: key, path: "/once" });
    await open(page, fleet.first);
    await logIn(page, { name: key.slice(0, 60) });

    await shownIn(page, "#refused-table", reads);
    await row(page, "#refused-table", reads).getByRole("button", { name: /^Why/ }).click();
    await headline(page, /Refused now by rule once/);
    await shownIn(page, ".asked", reads);
    await shownIn(page, "#why-details tbody", reads);

    await page.locator("#blocks-form button").click();
    await shownIn(page, "#blocks-list", reads);

    await page.locator("#why-details").getByRole("button", { name: "Give it other limits…" }).click();
    await page.locator("#override-limits").fill("7/h");
    await page.locator("#override-reason").fill(key.slice(0, 900));
    await page.locator("#override-form button[type=submit]").click();
    await shownIn(page, "#overrides-list", reads);
    await shownIn(page, "#audit-list", reads);
    await holdsAsText(page);
  });
}

pageTest(
  "a long key is cut, and whole when asked for",
  { permissions: ["clipboard-read", "clipboard-write"] },
  async (page) => {
    await fleet.check(fleet.second, { client: LONG, path: "/once" });
    await fleet.check(fleet.second, { client: LONG, path: "/once" });
    await open(page, fleet.first);
    const shown = row(page, "#refused-table", "k".repeat(56));
    await shown.getByRole("button", { name: "all 1023" }).click();
    await shown.filter({ hasText: LONG }).waitFor();
    await shown.getByRole("button", { name: "Copy" }).click();
    await shown.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), LONG);
  },
);
