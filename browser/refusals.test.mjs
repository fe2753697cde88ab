// Who is refused, wherever in the fleet, and why.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { ask, headline, open, pageTest, row, until } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const exhaust = async (client) => {
  for (let times = 0; times < 12; times += 1) await fleet.check(fleet.second, { client, path: "/api/external/orders" });
};

pageTest("a refusal on the other node shows with its rule, and Why? explains it", {}, async (page) => {
  await open(page, fleet.first);
  await exhaust("c1");
  const refused = row(page, "#refused-table", "c1", "external-api", "60s", "≥ 2");
  await refused.waitFor();
  await refused.getByRole("button", { name: "Why is c1 refused?" }).click();
  await headline(page, /Refused now by rule external-api, limit 60s: 10 of 10 used\. There is room in \d/);
  await row(page, "#why-details", "external-api", "3600s", "10 of 100", "has room").first().waitFor();
  assert.equal(await page.locator("#why-input").inputValue(), "client=c1 path=/api/external/orders");
});

pageTest("an address leads to an answer, and back to what was before", {}, async (page) => {
  await exhaust("c2");
  await open(page, `${fleet.first}/#why=client%3Dc2%20path%3D%2Fapi%2Fexternal%2Forders`);
  await headline(page, /Refused now by rule external-api/);
  await ask(page, "somebody-else");
  await headline(page, /Allowed now, 99 of 100 left after it \(by rule default, limit 60s\)/);
  await page.goBack();
  await headline(page, /Refused now by rule external-api/);
  await page.locator("#why-details").getByRole("button", { name: "Close" }).click();
  await page.locator("#why-headline").waitFor({ state: "hidden" });
});

pageTest("a key alone leads to what it was refused for", {}, async (page) => {
  await exhaust("c3");
  await open(page, fleet.first);
  await row(page, "#refused-table", "c3").waitFor();
  await ask(page, "c3");
  await headline(page, /Allowed now/);
  await page.locator("#why-details").getByRole("button", { name: "client=c3 path=/api/external/orders" }).click();
  await headline(page, /Refused now by rule external-api/);
});

pageTest("who has room again is told to have been refused lately", {}, async (page) => {
  await exhaust("c6");
  await open(page, fleet.first);
  await row(page, "#refused-table", "c6", "≥ 2").waitFor();
  await ask(page, "client=c6 path=/api/external/orders");
  await headline(page, /Refused now by rule external-api/);
  const again = page.locator("#why-details").getByRole("button", { name: "Ask again" });
  const told = page.locator("#why-details .note");
  assert.equal(await told.count(), 0, "the answer itself says so");
  // A token of the ten a minute comes back every six seconds.
  await until(
    async () => {
      await again.click();
      await page.locator("#why-result:not([aria-busy])").waitFor();
      return page.locator("#why-headline").textContent();
    },
    (text) => text.includes("Allowed now"),
  );
  const lately = /^Refused ≥ \d times in the last 5 minutes, last at [\d:]{8}, by external-api 60s$/;
  await told.filter({ hasText: lately }).waitFor();
  await page.waitForFunction(() => document.activeElement.id === "why-result");
});

pageTest("of a refusal whose facts are too long to be told, the rule is", {}, async (page) => {
  const [client, user] = ["k", "u"].map((letter) => letter.repeat(1024));
  const facts = { client, user, path: `/api/external/${"x".repeat(1000)}` };
  for (let times = 0; times < 12; times += 1) await fleet.check(fleet.second, facts);
  await open(page, fleet.first);
  await row(page, "#refused-table", "kkkk").getByRole("button", { name: /^Why/ }).click();
  await headline(page, /Allowed now/);
  const told = "Lately it was refused by external-api 60s, for facts that are not known here";
  await page.locator("#why-details").filter({ hasText: told }).waitFor();
});

pageTest("who is refused now is told on demand, until when", {}, async (page) => {
  await exhaust("c4");
  await open(page, fleet.first);
  await row(page, "#refused-table", "c4").waitFor();
  await page.locator("#blocks-prefix").fill("c4");
  await page.locator("#blocks-form button").click();
  await row(page, "#blocks-list", "c4", "external-api", /, in \d/, "10 of 10 used").waitFor();
  assert.equal(await page.locator("#blocks-list tbody tr").count(), 1);
  await page.locator("#blocks-list").getByRole("button", { name: "Why is c4 refused?" }).click();
  await headline(page, /Refused now by rule external-api/);
});

pageTest("the figures are those of the whole fleet", {}, async (page) => {
  await open(page, fleet.first);
  await page.locator("#scope").filter({ hasText: "by web-1 · the whole fleet, 2 nodes" }).waitFor();
  for (const node of ["web-1", "web-2"]) await row(page, "#nodes-table", node, "Up", "answers").waitFor();
  await exhaust("c5");
  const tile = page.locator(".tile").filter({ hasText: "Refused" });
  await tile.filter({ hasNotText: /^Refused0\/s/ }).waitFor();
  await page.locator("#health-sentence").filter({ hasText: "All well" }).waitFor();
});

pageTest("a wrong question is told what is wrong with it", { expected: [/400/] }, async (page) => {
  await open(page, fleet.first);
  await ask(page, "client=c1 client=c2");
  await headline(page, "The fact client is given twice");
  await ask(page, "x".repeat(1025));
  await headline(page, /key/);
});
