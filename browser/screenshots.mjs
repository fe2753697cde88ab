// Plays an incident against real nodes and takes screenshots of each step into target/browser, on desktop and phone,
// light and dark: a client exceeds its limit, a banned one keeps trying and is not unbanned by a careless override, a bad
// policy is written, Redis is down, a node is killed, and an override ends the incident. LOAD_SECONDS and OUTAGE_SECONDS
// set the times.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ADMIN_TOKEN, startFleet } from "./fleet.mjs";
import { explain, headline, launch, logIn, open, row, until } from "./page.mjs";

const OUT = fileURLToPath(new URL("../target/browser", import.meta.url));
const LOAD_MS = Number(process.env.LOAD_SECONDS ?? 60) * 1000;
const OUTAGE_MS = Number(process.env.OUTAGE_SECONDS ?? 60) * 1000;
const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

const POLICY = `
version: 1
defaults: { limit: 600/min }
rules:
  - { name: whole-service, per: [], limits: [50000/min], continue: true }
  - { name: internal-jobs, match: { tier: internal }, unlimited: true }
  - { name: banned, match: { client: [evil] }, limits: [0] }
  - { name: login, match: { method: POST, path: /login }, per: [ip], limits: [5/min], on_store_loss: deny }
  - { name: external-api, match: { path: /api/external/** }, limits: [300/min, 9000/h], algorithm: token_bucket }
  - { name: search, match: { path: /search }, per: [user], mode: shadow, limits: [300/min], next: { limits: [250/min] }}
  - { name: orders, match: { path: /orders }, limits: [150/min], next: { limits: [100/min] }, on_store_loss: allow }
`;

// Requests of one interval: most clients stay below their limits, one script does not, and a banned client tries on.
const INTERVAL_MS = 50;
const requestsAt = (tick) => [
  { client: "c-batch", method: "GET", path: "/api/external/orders" },
  { client: `c-${tick % 7}`, method: "GET", path: "/api/external/items" },
  { client: `c-${tick % 5}`, method: "POST", path: "/orders" },
  { user: `u-${tick % 3}`, method: "GET", path: "/search" },
  { client: "nightly", tier: "internal", method: "GET", path: "/reports" },
  ...(tick % 20 === 0 ? [{ ip: "203.0.113.9", method: "POST", path: "/login" }] : []),
  ...(tick % 10 === 0 ? [{ client: "evil", method: "GET", path: "/api/external/items" }] : []),
];

const sendLoad = async (fleet, state) => {
  for (let tick = 0; !state.isDone; tick += 1) {
    const url = tick % 2 && !state.isSecondDown ? fleet.second : fleet.first;
    const checks = requestsAt(tick).map((facts) => fleet.check(url, facts).catch(() => null));
    await Promise.all([...checks, pause(INTERVAL_MS)]);
  }
};

const openPages = async (browser, url) => {
  const pages = [];
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) {
      const deviceScaleFactor = size === "phone" ? 2 : 1;
      const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor });
      await open(page, url);
      await logIn(page, { name: "kim" });
      await page.locator("#override-form").waitFor();
      pages.push({ name: `${size}-${colorScheme}`, page });
    }
  }
  return pages;
};

const saveAll = async (pages, step, options = {}) => {
  for (const { name, page } of pages) {
    await page.bringToFront();
    await page.mouse.move(0, 0);
    await page.evaluate(() => scrollTo(0, 0));
    await pause(1500);
    await page.screenshot({ path: join(OUT, `${step}-${name}.png`), ...options });
  }
};

// An override without a rule could mean the ban: it is refused and names the rules, and the ban stays.
const tryToUnban = async (fleet) => {
  const response = await fetch(`${fleet.first}/admin/external/clients/evil/limits`, {
    method: "PUT",
    headers: { "content-type": "application/json", authorization: `Bearer ${ADMIN_TOKEN}` },
    body: JSON.stringify({ limits: [{ limit: 100, window_ms: 60_000 }] }),
  });
  assert.equal(response.status, 400);
  const { candidates } = await response.json();
  assert.ok(candidates.some(({ rule, blocks }) => rule === "banned" && blocks));
  const { allowed, rule } = await fleet.check(fleet.first, { client: "evil", method: "GET", path: "/api/external/items" });
  assert.deepEqual([allowed, rule], [false, "banned"]);
};

const play = async (fleet, pages, state) => {
  const [{ page }] = pages;
  await pause(LOAD_MS);
  await row(page, "#refused-table", "c-batch").waitFor();
  await tryToUnban(fleet);
  await saveAll(pages, "1-refused");
  fleet.writePolicy(`${POLICY}  - { name: reports, match: { path: /reports }, limit: 10/s }\n`);
  await row(page, "#events-list", "policy rejected").first().waitFor();
  await saveAll(pages, "2-policy-rejected");
  fleet.writePolicy(POLICY);
  await fleet.stopRedis();
  await pause(OUTAGE_MS);
  await saveAll(pages, "3-redis-lost");
  await fleet.restartRedis();
  await row(page, "#events-list", "Redis back").first().waitFor();
  state.isSecondDown = true;
  await fleet.killNode(1);
  await row(page, "#events-list", "node silent").first().waitFor();
  await saveAll(pages, "4-node-silent");
  for (const { page: each } of pages) {
    await explain(each, "c-batch");
    await headline(each, /Refused|Allowed/);
  }
  await saveAll(pages, "5-why");
  await endByOverride(fleet, page);
  for (const { page: each } of pages) {
    await explain(each, "c-batch");
    await headline(each, /Allowed/);
  }
  await saveAll(pages, "6-override");
  await saveAll(pages, "7-whole-page", { fullPage: true });
};

const endByOverride = async (fleet, page) => {
  await page.getByRole("button", { name: "Set override…" }).click();
  await page.locator("#override-limits").fill("6000/min");
  await page.locator("#override-fresh").check();
  await page.locator("#override-form button[type=submit]").click();
  await page.locator("#override-preview table").waitFor();
  await page.screenshot({ path: join(OUT, "5-preview.png") });
  await page.getByRole("button", { name: "Set override", exact: true }).click();
  const facts = { client: "c-batch", method: "GET", path: "/api/external/orders" };
  await until(
    () => fleet.check(fleet.first, facts),
    (decision) => decision.allowed,
  );
};

mkdirSync(OUT, { recursive: true });
const fleet = await startFleet({ policy: POLICY });
const browser = await launch();
const state = { isDone: false, isSecondDown: false };
const load = sendLoad(fleet, state);
try {
  await play(fleet, await openPages(browser, fleet.first), state);
} finally {
  state.isDone = true;
  await load;
  await browser.close();
  await fleet.stop();
}
