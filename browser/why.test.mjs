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
  - { name: jobs, match: { tier: internal, path: /search }, unlimited: true }
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
