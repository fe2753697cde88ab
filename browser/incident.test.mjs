// An incident: Redis is lost, a policy is rejected, a node is killed, and then the node that serves the page. The page
// says since when, and what changed.
import assert from "node:assert/strict";
import { after } from "node:test";
import { POLICY, startFleet } from "./fleet.mjs";
import { open, pageTest, row, until } from "./page.mjs";

const LOGIN = "  - { name: login, match: { path: /login }, per: [ip], limits: [5/min], on_store_loss: deny }\n";
const fleet = await startFleet({ policy: POLICY + LOGIN });
after(() => fleet.stop());

const DISCONNECTED = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|503/;

const loseRedis = async (page) => {
  await fleet.stopRedis();
  const message = page.locator("#health.bad #health-message").filter({ hasText: "Redis is unreachable" });
  await until(
    async () => {
      await Promise.all([fleet.first, fleet.second].map((url) => fleet.check(url, { client: "c1" })));
      return message.isVisible();
    },
    (shown) => shown,
  );
};

const restoreRedis = async (page) => {
  await fleet.restartRedis();
  await until(
    async () => {
      await Promise.all([fleet.first, fleet.second].map((url) => fleet.check(url, { client: "c1" })));
      return page.locator("#health.ok").isVisible();
    },
    (shown) => shown,
  );
};

pageTest("an outage shows its start, its duration and its effect, and stays in the events", { expected: [DISCONNECTED] }, async (page) => {
  await open(page, fleet.first);
  await page.locator("#health.ok").waitFor();
  await loseRedis(page);
  const since = page.locator("#health-since");
  await since.filter({ hasText: /^since \d\d:\d\d:\d\d, for \d/ }).waitFor();
  const [start, ...first] = (await since.textContent()).split(", ");
  await since.filter({ hasNotText: first.join(", ") }).waitFor();
  assert.equal((await since.textContent()).split(", ")[0], start, "only the duration changes");
  const effects = page.locator("#health-effects li");
  await effects.filter({ hasText: "Every request refused: login" }).waitFor();
  await effects.filter({ hasText: "By the share of each node: external-api, once, trial, default" }).waitFor();
  await page.locator("#charts figcaption").first().filter({ hasText: "Redis lost" }).waitFor();

  await restoreRedis(page);
  await row(page, "#events-list", "Redis lost", "web-1").first().waitFor();
  await row(page, "#events-list", "Redis back", "web-1").first().waitFor();
  await page.locator("#health-events").filter({ hasText: "Redis back" }).waitFor();
  assert.equal(await since.textContent(), "");
  assert.equal(await effects.count(), 0);
});

pageTest("a rejected policy and a killed node are events with their time", {}, async (page) => {
  await open(page, fleet.first);
  fleet.writePolicy("version: 1\nrules: [{ name: broken, limit: 1/s }]\n");
  await row(page, "#events-list", "policy rejected", "web-1", "limit").first().waitFor();
  await page.locator("#health.bad #health-message").filter({ hasText: "The policy file could not be loaded" }).waitFor();
  await page.locator("#health-since").filter({ hasText: /^since \d\d:\d\d:\d\d, for \d/ }).waitFor();
  await page.locator("#health-reason").filter({ hasText: "unknown field, did you mean \"limits\"?" }).waitFor();
  const event = row(page, "#events-list", "policy rejected", "web-1").first();
  for (const text of ["policy rejected", "web-1"])
    assert.ok((await event.getByText(text, { exact: true }).boundingBox()).height < 30, `${text} is in one line`);
  fleet.writePolicy(POLICY + LOGIN);
  await page.locator("#health.ok").waitFor();
  await fleet.killNode(1);
  await row(page, "#nodes-table", "web-2", /Silent, last seen \d\d:\d\d:\d\d \(\d+ s ago\)/).waitFor();
  await page.locator("#health-message").filter({ hasText: "web-2 is silent" }).waitFor();
  await page.locator("#health-since").filter({ hasText: /^since \d\d:\d\d:\d\d, for \d+ s/ }).waitFor();
  await row(page, "#events-list", "node silent", "web-2").waitFor();
});

pageTest("figures of a dead node are marked with their age, and other nodes are offered", { expected: [DISCONNECTED] }, async (page) => {
  await open(page, fleet.first);
  await row(page, "#nodes-table", "web-2").waitFor();
  await fleet.killNode(0);
  await page.locator("#stale-age").filter({ hasText: /^The figures are of \d\d:\d\d:\d\d \(\d+ s ago\)\.$/ }).waitFor();
  assert.ok(await page.evaluate(() => document.body.classList.contains("stale")));
  const link = page.locator("#stale-nodes").getByRole("link", { name: "web-2" });
  assert.equal(await link.getAttribute("href"), `${fleet.second}/`);
  const value = page.locator(".tile .value").first();
  const colours = await value.evaluate((node) => [getComputedStyle(node).color, getComputedStyle(document.body).color]);
  assert.notEqual(colours[0], colours[1], "the figures are grey");
});
