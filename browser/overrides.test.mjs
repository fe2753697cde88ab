// Changes by administrators, which apply on every node.
import assert from "node:assert/strict";
import { after } from "node:test";
import { POLICY, startFleet } from "./fleet.mjs";
import { explain, headline, logIn, open, pageTest, row, until } from "./page.mjs";

const fleet = await startFleet({ policy: `${POLICY}  - { name: banned, match: { client: [evil] }, limits: [0] }\n` });
after(() => fleet.stop());

const facts = (client) => ({ client, path: "/api/external/orders" });
const exhaust = async (client) => {
  for (let times = 0; times < 12; times += 1) await fleet.check(fleet.second, facts(client));
};
const waitForLimit = async (client, limit) => {
  for (const url of [fleet.first, fleet.second])
    await until(
      () => fleet.check(url, facts(client)),
      (decision) => decision.limit === limit,
    );
};

const openAsAdmin = async (page) => {
  await open(page, fleet.first);
  await logIn(page, { name: "kim" });
  await page.locator("#override-form").waitFor();
};

const preview = async (page, { client, limits, rule = "", reason = "" }) => {
  await page.locator("#override-client").fill(client);
  await page.locator("#override-limits").fill(limits);
  await page.locator("#override-rule").selectOption(rule);
  await page.locator("#override-reason").fill(reason);
  await page.locator("#override-form button[type=submit]").click();
};
const confirm = (page) => page.getByRole("button", { name: "Set override", exact: true }).click();
const change = (page, ...texts) => row(page, "#override-preview", ...texts);

pageTest("sets, changes and removes an override on every node", {}, async (page) => {
  await openAsAdmin(page);
  const reason = "the sale of the year";
  await preview(page, { client: "shop", limits: "20/min 200/h", rule: "external-api", reason });
  await change(page, "external-api", "10/min", "→ 20/min").waitFor();
  await change(page, "external-api", "100/h", "→ 200/h").waitFor();
  assert.equal((await fleet.check(fleet.first, facts("shop"))).limit, 10, "the preview changes nothing");
  await confirm(page);
  await page
    .locator("#override-status")
    .filter({ hasText: /^Override set: 20\/min, 200\/h for external-api, until/ })
    .waitFor();
  await waitForLimit("shop", 20);

  const listed = row(page, "#overrides-list", "shop");
  await listed
    .filter({ hasText: "20/min, 200/h" })
    .filter({ hasText: "kim" })
    .filter({ hasText: "the sale of the year" })
    .waitFor();
  await listed.getByRole("button", { name: "Edit" }).click();
  assert.equal(await page.locator("#override-limits").inputValue(), "20/min 200/h");
  await page.locator("#override-limits").fill("30/min 200/h");
  await page.locator("#override-form button[type=submit]").click();
  await change(page, "external-api", "20/min", "→ 30/min").waitFor();
  await confirm(page);
  await listed.filter({ hasText: "30/min, 200/h" }).waitFor();
  await waitForLimit("shop", 30);

  await listed.getByRole("button", { name: "Remove" }).click();
  await listed.getByRole("button", { name: "Yes, remove" }).click();
  await listed.waitFor({ state: "detached" });
  assert.equal(await page.locator("#override-status").textContent(), "", "the status is cleared");
  await waitForLimit("shop", 10);
  await row(page, "#audit-list", "override removed", "shop", "kim").waitFor();
  await row(page, "#audit-list", "override set", "20/min, 200/h → 30/min, 200/h", "the sale of the year").waitFor();
});

pageTest("sets an override from an explanation", {}, async (page) => {
  await exhaust("late");
  await openAsAdmin(page);
  await explain(page, "client=late path=/api/external/orders");
  await headline(page, /Refused now/);
  await page.getByRole("button", { name: "Set override…" }).click();
  assert.equal(await page.locator("#override-client").inputValue(), "late");
  assert.equal(await page.locator("#override-rule").inputValue(), "external-api", "the rule that refused");
  await page.locator("#override-limits").fill("500/min");
  await page.locator("#override-form button[type=submit]").click();
  await change(page, "external-api", "10/min", "→ 500/min").waitFor();
  await page.locator("#override-preview").filter({ hasText: "Stay: external-api 100/h" }).waitFor();
  await confirm(page);
  await waitForLimit("late", 500);
  await explain(page, "client=late path=/api/external/orders");
  const note = "Override: 500/min for external-api";
  await page.locator("#why-details").filter({ hasText: note }).waitFor();
  // The used share of a token bucket stays used: the page shows what is left, not hundreds of used requests.
  await row(page, "#why-details", "external-api", "500/min", "override", /\d+ of 500 left/).waitFor();
  assert.doesNotMatch(await page.locator("#why-details").textContent(), /\d{3} of 500 used/);
});

pageTest("a fresh override is usable at once", {}, async (page) => {
  await exhaust("fresh");
  await openAsAdmin(page);
  await explain(page, "fresh");
  await headline(page, /Refused now by rule external-api/);
  await page.getByRole("button", { name: "Set override…" }).click();
  await page.locator("#override-limits").fill("500/min");
  await page.locator("#override-only").check();
  await page.locator("#override-fresh").check();
  await page.locator("#override-form button[type=submit]").click();
  await change(page, "external-api", "100/h", "→ removed").waitFor();
  await page.locator("#override-preview").filter({ hasText: "counters of this rule would be reset" }).waitFor();
  await confirm(page);
  await page.locator("#override-status").filter({ hasText: "Override set: 500/min for external-api" }).waitFor();
  const decision = await fleet.check(fleet.first, facts("fresh"));
  assert.deepEqual([decision.allowed, decision.remaining], [true, 499]);
});

pageTest("an ambiguous override offers the rules to choose from", { expected: [/400/] }, async (page) => {
  await openAsAdmin(page);
  await preview(page, { client: "evil", limits: "20/min" });
  const choice = page.locator("#override-preview li");
  await choice.filter({ hasText: "banned" }).filter({ hasText: "blocked" }).waitFor();
  await choice.getByRole("button", { name: "once", exact: true }).click();
  await change(page, "once", "1/h").waitFor({ state: "detached" });
  await change(page, "once", "→ 20/min").waitFor();
  assert.equal(await page.locator("#override-rule").inputValue(), "once");
  await page.locator("#override-preview").getByRole("button", { name: "Cancel" }).click();
  await page.locator("#override-rule").selectOption("banned");
  await page.locator("#override-form button[type=submit]").click();
  await page.locator("#override-preview").filter({ hasText: "Lifts the block of banned." }).waitFor();
  await page.locator("#override-limits").fill("30/min");
  assert.equal(await page.locator("#override-preview").textContent(), "", "a changed form needs a new preview");
  assert.equal(await page.locator("#overrides-list tbody tr").filter({ hasText: "evil" }).count(), 0);
});

pageTest("resets the usage of a client after a confirmation", {}, async (page) => {
  await exhaust("stuck");
  await openAsAdmin(page);
  await explain(page, "client=stuck path=/api/external/orders");
  await headline(page, /Refused now/);
  const details = page.locator("#why-details");
  await details.getByRole("button", { name: "Reset usage" }).click();
  await details.getByRole("button", { name: "Cancel" }).click();
  await details.getByRole("button", { name: "Reset usage" }).click();
  await details.getByRole("button", { name: "Yes, reset" }).click();
  await headline(page, /Allowed now, 9 of 10 left after this request/);
  await details.getByText("The usage of this client was reset.").waitFor();
  await page.waitForFunction(() => document.activeElement.id === "why-result");
  for (const url of [fleet.first, fleet.second]) assert.equal((await fleet.check(url, facts("stuck"))).allowed, true);
});

pageTest("an invalid override shows an error in the form", { expected: [/400/] }, async (page) => {
  await openAsAdmin(page);
  await preview(page, { client: "odd", limits: "20 a minute" });
  await page.locator("#override-status.problem").filter({ hasText: "“20” is not a limit" }).waitFor();
  await preview(page, { client: "odd", limits: "5-concurrent" , rule: "once" });
  await page.locator("#override-status.problem, #override-preview h3").first().waitFor();
  assert.equal(await page.locator("#override-client").inputValue(), "odd");
});
