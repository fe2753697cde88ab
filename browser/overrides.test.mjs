// What administrators change through the page, and that every node obeys.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { ask, headline, logIn, open, pageTest, row, until } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const facts = (client) => ({ client, path: "/api/external/orders" });
const exhaust = async (client) => {
  for (let times = 0; times < 12; times += 1) await fleet.check(fleet.second, facts(client));
};
const everywhere = async (client, limit) => {
  for (const url of [fleet.first, fleet.second])
    await until(
      () => fleet.check(url, facts(client)),
      (answer) => answer.limit === limit,
    );
};

const admin = async (page) => {
  await open(page, fleet.first);
  await logIn(page, { name: "kim" });
  await page.locator("#override-form").waitFor();
};

const set = async (page, { client, limits, reason = "" }) => {
  await page.locator("#override-client").fill(client);
  await page.locator("#override-limits").fill(limits);
  await page.locator("#override-reason").fill(reason);
  await page.locator("#override-form button[type=submit]").click();
};

pageTest("an override is set, changed and removed, on every node", {}, async (page) => {
  await admin(page);
  await set(page, { client: "shop", limits: "20/min 200/h", reason: "the sale of the year" });
  await page
    .locator("#override-told")
    .filter({ hasText: /^Set: 20\/min, 200\/h in external-api, once, trial, default, until/ })
    .waitFor();
  await everywhere("shop", 20);

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
  await everywhere("shop", 30);

  await listed.getByRole("button", { name: "Remove" }).click();
  await listed.getByRole("button", { name: "Yes, remove" }).click();
  await listed.waitFor({ state: "detached" });
  assert.equal(await page.locator("#override-told").textContent(), "", "what was set is no more");
  await everywhere("shop", 10);
  await row(page, "#audit-list", "override removed", "shop", "kim").waitFor();
  await row(page, "#audit-list", "override set", "20/min, 200/h → 30/min, 200/h", "the sale of the year").waitFor();
});

pageTest("Why? leads to other limits for who is refused", {}, async (page) => {
  await exhaust("late");
  await admin(page);
  await ask(page, "client=late path=/api/external/orders");
  await headline(page, /Refused now/);
  await page.getByRole("button", { name: "Give it other limits…" }).click();
  assert.equal(await page.locator("#override-client").inputValue(), "late");
  await page.locator("#override-limits").fill("500/min");
  await page.locator("#override-rule").selectOption("external-api");
  await page.locator("#override-form button[type=submit]").click();
  await everywhere("late", 500);
  await ask(page, "client=late path=/api/external/orders");
  await page.locator("#why-details").filter({ hasText: "It has limits of its own: 500/min in external-api" }).waitFor();
});

pageTest("a reset asks first, and then forgets what was used", {}, async (page) => {
  await exhaust("stuck");
  await admin(page);
  await ask(page, "client=stuck path=/api/external/orders");
  await headline(page, /Refused now/);
  const details = page.locator("#why-details");
  await details.getByRole("button", { name: "Reset" }).click();
  await details.getByRole("button", { name: "Cancel" }).click();
  await details.getByRole("button", { name: "Reset" }).click();
  await details.getByRole("button", { name: "Yes, reset" }).click();
  await headline(page, /Allowed now, 9 of 10 left after it/);
  await details.getByText("Reset: it has used nothing now.").waitFor();
  await page.waitForFunction(() => document.activeElement.id === "why-result");
  for (const url of [fleet.first, fleet.second]) assert.equal((await fleet.check(url, facts("stuck"))).allowed, true);
});

pageTest("what is wrong with an override is told in its place", { expected: [/400/] }, async (page) => {
  await admin(page);
  await set(page, { client: "odd", limits: "20 a minute" });
  await page.locator("#override-told.problem").filter({ hasText: "“20” is no limit" }).waitFor();
  await set(page, { client: "odd", limits: "5-at-once" });
  await page.locator("#override-told.problem").filter({ hasText: "would not change any rule of the policy" }).waitFor();
  assert.equal(await page.locator("#override-client").inputValue(), "odd");
});
