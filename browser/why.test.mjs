// "Why?" answers about the client that was typed, in every rule.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, headline, open, pageTest, row } from "./page.mjs";

// Requests without a path match only the rule of the whole service, which allows nearly everything.
const POLICY = `
version: 1
rules:
  - { name: whole-service, per: [], limits: [50000/min], continue: true }
  - { name: search, match: { path: /search }, per: [client], limits: [2/min] }
  - { name: reports, match: { path: /reports }, per: [client, user], limits: [2/h] }
  - { name: login, match: { method: POST, path: /login }, per: [ip], limits: [3/h] }
  - { name: jobs, match: { tier: internal, path: /jobs }, unlimited: true }
`;
const fleet = await startFleet({ policy: POLICY });
after(() => fleet.stop());

const send = async (facts, times = 4) => {
  for (let sent = 0; sent < times; sent += 1) await fleet.check(fleet.second, facts);
};

for (const typed of ["c1", "client=c1"]) {
  pageTest(`explains the last refusal of a client typed as ${typed}`, {}, async (page) => {
    await send({ client: "c1", method: "GET", path: "/search" });
    await send({ client: "c12", path: "/search" }, 1);
    await open(page, fleet.first);
    await row(page, "#refused-table", "c1", "search").waitFor();
    await explain(page, typed);
    await headline(page, /Refused now by rule search, limit 2\/min/);
    const query = page.locator("#why-details .query");
    await query.filter({ hasText: "method GET" }).filter({ hasText: "path /search" }).waitFor();
    await row(page, "#why-details", "search", "2/min", /≥ \d+/).first().waitFor();
    const counters = page.getByRole("table", { name: "Counters of this client" });
    await counters.locator("tbody tr").filter({ hasText: "search" }).filter({ hasText: "2 of 2" }).waitFor();
    assert.equal(await counters.getByText("c12").count(), 0, "another client with the same prefix");
  });
}

pageTest("finds a client in keys of several facts, and an address", {}, async (page) => {
  await send({ client: "c2", user: "alice", path: "/reports" });
  await send({ client: "c3", ip: "203.0.113.9", method: "POST", path: "/login" });
  await open(page, fleet.first);
  await row(page, "#refused-table", "203.0.113.9").waitFor();
  await explain(page, "c2");
  await headline(page, /Refused now by rule reports, limit 2\/h/);
  await row(page, "#why-details", "reports", "2 of 2 used", "key c2:alice").waitFor();
  await explain(page, "203.0.113.9");
  await headline(page, /Refused now by rule login, limit 3\/h/);
  await row(page, "#why-details", "login", "3 of 3 used").first().waitFor();
});

pageTest("explains inline limits", {}, async (page) => {
  const limits = [{ limit: 2, window_ms: 3_600_000 }];
  for (let sent = 0; sent < 3; sent += 1)
    await fetch(`${fleet.first}/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key: "c4", limits }),
    });
  await open(page, fleet.first);
  await row(page, "#refused-table", "c4", "inline", "2/h").waitFor();
  await explain(page, "c4");
  await headline(page, /Refused now by rule inline, limit 2\/h: 0 of 2 left/);
  await row(page, "#why-details", "inline", "2/h", "0 of 2 left").first().waitFor();
});

pageTest("never says allowed about a client without quota in another rule", {}, async (page) => {
  await send({ client: "c5", path: "/search" }, 2);
  await open(page, fleet.first);
  await explain(page, "c5");
  await headline(page, /^✕ No quota left in search 2\/min\./);
  await explain(page, "c6");
  await headline(page, /Allowed now, .* \(rule whole-service, limit 50000\/min\)/);
  await page.locator("#why-details").filter({ hasText: "Not refused in the last 5 minutes." }).waitFor();
});

pageTest("a route shows rules that depend on the client", {}, async (page) => {
  await open(page, fleet.first);
  await explain(page, "GET /reports");
  await headline(page, "Rules for this route: whole-service, then reports.");
  await row(page, "#why-details", "whole-service", "applies", "continues with the next rule").waitFor();
  await row(page, "#why-details", "login", "no match", 'method is "GET", expected "POST"').count();
  await explain(page, "GET /jobs");
  await headline(page, /^Rules for this route: whole-service; 1 more may apply to some clients\.$/);
  await row(page, "#why-details", "jobs", "depends", "depends on the fact tier").waitFor();
});
