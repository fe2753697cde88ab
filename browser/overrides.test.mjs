// Changes by administrators, which apply on every node.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, headline, logIn, open, pageTest, row, until } from "./page.mjs";

const fleet = await startFleet();
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

const setOverride = async (page, { client, limits, reason = "" }) => {
  await page.locator("#override-client").fill(client);
  await page.locator("#override-limits").fill(limits);
  await page.locator("#override-reason").fill(reason);
  await page.locator("#override-form button[type=submit]").click();
};

pageTest("sets, changes and removes an override on every node", {}, async (page) => {
  await openAsAdmin(page);
  await setOverride(page, { client: "shop", limits: "20/min 200/h", reason: "the sale of the year" });
  await page
    .locator("#override-status")
    .filter({ hasText: /^Override set: 20\/min, 200\/h for external-api, once, trial, default, until/ })
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
  await page.locator("#override-limits").fill("500/min");
  await page.locator("#override-rule").selectOption("external-api");
  await page.locator("#override-form button[type=submit]").click();
  await waitForLimit("late", 500);
  await explain(page, "client=late path=/api/external/orders");
  const note = "The client has an override: 500/min for external-api";
  await page.locator("#why-details").filter({ hasText: note }).waitFor();
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
  await setOverride(page, { client: "odd", limits: "20 a minute" });
  await page.locator("#override-status.problem").filter({ hasText: "“20” is not a limit" }).waitFor();
  await setOverride(page, { client: "odd", limits: "5-concurrent" });
  const problem = page.locator("#override-status.problem");
  await problem.filter({ hasText: "would not change any rule of the policy" }).waitFor();
  assert.equal(await page.locator("#override-client").inputValue(), "odd");
});
