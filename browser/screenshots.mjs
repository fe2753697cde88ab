// Takes screenshots of the dashboard under load into target/browser: light and dark, desktop and phone.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ADMIN_TOKEN, startFleet } from "./fleet.mjs";
import { headline, launch, logIn, open, row } from "./page.mjs";

const OUT = fileURLToPath(new URL("../target/browser", import.meta.url));
const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
// Duration of the load before the first screenshot, so that the charts have data; LOAD_SECONDS overrides it.
const LOAD_MS = Number(process.env.LOAD_SECONDS ?? 60) * 1000;

const POLICY = `
version: 1
defaults: { limit: 600/min }
rules:
  - { name: internal-jobs, match: { tier: internal }, unlimited: true }
  - { name: login, match: { method: POST, path: /login }, per: [ip], limits: [5/min], on_store_loss: deny }
  - { name: external-api, match: { path: /api/external/** }, limits: [300/min, 9000/h], algorithm: token_bucket }
  - { name: search, match: { path: /search }, per: [user], mode: shadow, limits: [300/min], next: { limits: [250/min] }}
  - { name: orders, match: { path: /orders }, limits: [150/min], distributed: shadow }
`;

// Requests of one interval: most clients stay below their limits, one script does not.
const INTERVAL_MS = 50;
const requestsAt = (tick) => [
  { client: "c-batch", path: "/api/external/orders" },
  { client: `c-${tick % 7}`, path: "/api/external/items" },
  { client: `c-${tick % 5}`, path: "/orders" },
  { user: `u-${tick % 3}`, path: "/search" },
  { client: "nightly", tier: "internal", path: "/reports" },
  ...(tick % 20 === 0 ? [{ ip: "203.0.113.9", method: "POST", path: "/login" }] : []),
  ...(Math.floor(tick / 80) % 3 === 0 ? [{ client: "<b>c-odd</b>\u202e", path: "/api/external/orders" }] : []),
];

const sendLoad = async (fleet, isDone) => {
  for (let tick = 0; !isDone(); tick += 1) {
    const url = tick % 2 ? fleet.first : fleet.second;
    await Promise.all([...requestsAt(tick).map((facts) => fleet.check(url, facts)), pause(INTERVAL_MS)]);
  }
};

const setOverride = (fleet) =>
  fetch(`${fleet.first}/admin/external/clients/c-3/limits`, {
    method: "PUT",
    headers: { "content-type": "application/json", authorization: `Bearer ${ADMIN_TOKEN}` },
    body: JSON.stringify({
      limits: [{ limit: 200, window_ms: 60_000 }],
      reason: "the sale of the year",
      author: "kim",
    }),
  });

const takeScreenshots = async (browser, fleet, size, colorScheme) => {
  const page = await browser.newPage({
    viewport: SIZES[size],
    colorScheme,
    deviceScaleFactor: size === "phone" ? 2 : 1,
  });
  const save = (name, fullPage) => page.screenshot({ path: join(OUT, `${size}-${colorScheme}-${name}.png`), fullPage });
  await open(page, fleet.first);
  await row(page, "#refused-table", "c-batch").waitFor();
  await save("first", false);
  await logIn(page, { name: "kim" });
  await row(page, "#overrides-list", "c-3").waitFor();
  await row(page, "#refused-table", "c-batch").getByRole("button", { name: /^Why/ }).click();
  await headline(page, /now/);
  await page.evaluate(() => scrollTo(0, 0));
  await save("why", false);
  await page.locator("#blocks-form button").click();
  await page.locator("#rollout").scrollIntoViewIfNeeded();
  await page.evaluate(() => scrollTo(0, 0));
  await save("full", true);
  await page.close();
};

mkdirSync(OUT, { recursive: true });
const fleet = await startFleet({ policy: POLICY });
const browser = await launch();
try {
  await setOverride(fleet);
  const start = Date.now();
  await sendLoad(fleet, () => Date.now() - start > LOAD_MS);
  let isDone = false;
  const load = sendLoad(fleet, () => isDone);
  for (const size of Object.keys(SIZES))
    for (const colorScheme of ["light", "dark"]) await takeScreenshots(browser, fleet, size, colorScheme);
  isDone = true;
  await load;
} finally {
  await browser.close();
  await fleet.stop();
}
