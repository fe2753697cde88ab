// Refusals by rule, time ranges, sorting and totals; many rules and keys.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, headline, open, pageTest, row } from "./page.mjs";

const RULES = Array.from(
  { length: 50 },
  (_, nth) => `  - { name: rule-${nth}, match: { path: /p/${nth} }, limits: [{ rate: 1/h, burst: 2, algorithm: token_bucket }] }`,
);
const fleet = await startFleet({ policy: `version: 1\nrules:\n${RULES.join("\n")}\n` });
after(() => fleet.stop());

const batch = (facts) =>
  fetch(`${fleet.second}/check/batch`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ requests: facts.map((each) => ({ facts: each })) }),
  });

const refuse = async (nth, times) => {
  for (let sent = 0; sent < times + 2; sent += 1) await fleet.check(fleet.second, { client: "c", path: `/p/${nth}` });
};

pageTest("shows refusals by rule with match, burst, counts and totals", {}, async (page) => {
  await open(page, fleet.first);
  await page.locator("#by-rule-table").filter({ hasText: "No rule refused a request in this time." }).waitFor();
  await refuse(1, 2);
  await refuse(2, 5);
  const shown = row(page, "#by-rule-table", "rule-2", "/p/2", "1/h burst 2").filter({ hasText: "71 %" });
  await shown.waitFor();
  await row(page, "#by-rule-table", "rule-1", "29 %").waitFor();
  await page.locator("#by-rule-table tfoot").filter({ hasText: /^Total.*7$/ }).waitFor();
  const first = page.locator("#by-rule-table tbody tr").first();
  assert.match(await first.textContent(), /^rule-2/, "most refusals first");
  await page.locator("#by-rule-table").getByRole("button", { name: "Rule", exact: true }).click();
  await first.filter({ hasText: "rule-1" }).waitFor();
  assert.equal(await page.locator("#by-rule-table th").first().getAttribute("aria-sort"), "ascending");
  await page.getByRole("slider", { name: "Refusals per second by rule" }).waitFor();
});

pageTest("longer ranges are loaded once and extended by the live stream", {}, async (page) => {
  const loads = [];
  page.on("request", (request) => {
    if (request.url().includes("/api/history")) loads.push(request.url());
  });
  await open(page, fleet.first);
  for (const [range, text] of [["1 h", "last hour"], ["24 h", "last 24 hours"]]) {
    await page.getByRole("button", { name: range, exact: true }).click();
    await page.locator("#by-rule h2").filter({ hasText: text }).waitFor();
    await row(page, "#by-rule-table", "rule-2").waitFor();
  }
  const before = loads.length;
  assert.equal(before, 2);
  await refuse(3, 4);
  await row(page, "#by-rule-table", "rule-3").waitFor();
  assert.equal(loads.length, before, "new points come from the live stream");
  assert.equal(await page.locator("#range-problem").textContent(), "");
});

pageTest("shows which rules apply to a route, in order, and why", {}, async (page) => {
  await open(page, fleet.first);
  await explain(page, "GET /p/49");
  await headline(page, /^Rules for this route: rule-49\.$/);
  await row(page, "#why-details", "rule-0", "no match", 'path is "/p/49", expected "/p/0"').waitFor();
  await row(page, "#why-details", "rule-49", "applies", "1/h", "matches, and no further rule is tried").waitFor();
  await row(page, "#why-details", "default", "not reached", "applies only if no other rule matches").waitFor();
  assert.equal(await page.locator("#why-details tbody tr").count(), 51);
});

pageTest("works with 10 000 keys and 50 refusing rules", {}, async (page) => {
  for (let start = 0; start < 10_000; start += 1000) {
    const facts = Array.from({ length: 1000 }, (_, nth) => ({ client: `k${start + nth}`, path: `/p/${nth % 50}` }));
    const response = await batch(facts);
    assert.equal(response.status, 200, await response.text());
  }
  await open(page, fleet.first);
  // A node on a busy machine sheds requests, so the refusals are repeated until they are shown.
  const refused = row(page, "#by-rule-table", "rule-30");
  const isShown = () => refused.waitFor({ timeout: 3000 }).then(() => true, () => false);
  for (let times = 0; times < 10; times += 1) {
    await batch(Array.from({ length: 50 }, (_, nth) => ({ client: "many", path: `/p/${nth}` })));
    if (await isShown()) break;
  }
  await refused.waitFor();
  await explain(page, "k7");
  const counters = page.getByRole("table", { name: "Counters of this client" }).locator("tbody tr");
  await counters.filter({ hasText: "rule-7" }).waitFor();
  assert.equal(await counters.count(), 1, "only the counters of k7");
  // Frames are drawn quickly enough for input: the time of one drawing is far below a second.
  const blocked = await page.evaluate(
    () =>
      new Promise((resolve) => {
        let longest = 0;
        let last = performance.now();
        const end = last + 3000;
        const step = () => {
          const now = performance.now();
          longest = Math.max(longest, now - last);
          last = now;
          if (now < end) setTimeout(step, 10);
          else resolve(longest);
        };
        step();
      }),
  );
  assert.ok(blocked < 1000, `the page was blocked for ${blocked} ms`);
});
