// Refused keys of all nodes, and the explanation of a refusal.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { explain, headline, open, pageTest, row, until } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const exhaust = async (client) => {
  for (let times = 0; times < 12; times += 1) await fleet.check(fleet.second, { client, path: "/api/external/orders" });
};

pageTest("shows a refusal on another node and explains it", {}, async (page) => {
  await open(page, fleet.first);
  await exhaust("c1");
  const refused = row(page, "#refused-table", "c1", "external-api", "10/min", "≥ 2");
  await refused.waitFor();
  await refused.getByRole("button", { name: "Why is c1 refused?" }).click();
  await headline(page, /Refused now by rule external-api, limit 10\/min: 0 of 10 left\. Retry in \d/);
  await row(page, "#why-details", "external-api", "100/h", "90 of 100 left", "allows").first().waitFor();
  assert.equal(await page.locator("#why-input").inputValue(), "client=c1 path=/api/external/orders");
});

pageTest("a link opens an explanation, and back returns to the previous one", {}, async (page) => {
  await exhaust("c2");
  await open(page, `${fleet.first}/#why=client%3Dc2%20path%3D%2Fapi%2Fexternal%2Forders`);
  await headline(page, /Refused now by rule external-api/);
  await explain(page, "other-key");
  await headline(page, /Allowed now, 99 of 100 left after this request \(rule default, limit 100\/min\)/);
  await page.goBack();
  await headline(page, /Refused now by rule external-api/);
  await page.locator("#why-details").getByRole("button", { name: "Close" }).click();
  await page.locator("#why-headline").waitFor({ state: "hidden" });
});

pageTest("other facts than those of the refusal link to the refused request", {}, async (page) => {
  await exhaust("c3");
  await open(page, fleet.first);
  await row(page, "#refused-table", "c3").waitFor();
  await explain(page, "c3 GET /other");
  await headline(page, /Allowed now/);
  const refusal = row(page, "#why-details", "external-api", "≥ 2");
  await refusal.getByRole("button", { name: "Explain the request that rule external-api refused" }).click();
  await headline(page, /Refused now by rule external-api/);
  assert.equal(await page.locator("#why-input").inputValue(), "client=c3 path=/api/external/orders");
});

pageTest("an allowed key shows its recent refusals", {}, async (page) => {
  await exhaust("c6");
  await open(page, fleet.first);
  await row(page, "#refused-table", "c6", "≥ 2").waitFor();
  await explain(page, "c6");
  await headline(page, /Refused now by rule external-api/);
  const refresh = page.locator("#why-details").getByRole("button", { name: "Refresh" });
  // At 10 per minute, one token is refilled every 6 s.
  await until(
    async () => {
      await refresh.click();
      await page.locator("#why-result:not([aria-busy])").waitFor();
      return page.locator("#why-headline").textContent();
    },
    (text) => text.includes("Allowed now"),
  );
  await headline(page, /But refused ≥ \d times in the last 5 minutes, last .*, by rule external-api, limit 10\/min/);
  await page.waitForFunction(() => document.activeElement.id === "why-result");
});

pageTest("a refusal with facts that are too long shows its rule", {}, async (page) => {
  const [client, user] = ["k", "u"].map((letter) => letter.repeat(1024));
  const facts = { client, user, path: `/api/external/${"x".repeat(1000)}` };
  for (let times = 0; times < 12; times += 1) await fleet.check(fleet.second, facts);
  await open(page, fleet.first);
  await row(page, "#refused-table", "kkkk").getByRole("button", { name: /^Why/ }).click();
  await headline(page, /Refused: this client was refused ≥ \d times in the last 5 minutes, .* by rule external-api, limit 10\/min/);
  await page.locator("#why-details").filter({ hasText: "The facts of the refused request were not recorded" }).waitFor();
});

pageTest("lists keys that are refused now, and until when", {}, async (page) => {
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

pageTest("shows the figures of all nodes", {}, async (page) => {
  await open(page, fleet.first);
  await page.locator("#scope").filter({ hasText: "served by web-1 · data of all 2 nodes" }).waitFor();
  for (const node of ["web-1", "web-2"]) await row(page, "#nodes-table", node, "Up", "connected").waitFor();
  await exhaust("c5");
  const tile = page.locator(".tile").filter({ hasText: "Refused" });
  await tile.filter({ hasNotText: /^Refused0\/s/ }).waitFor();
  await page.locator("#health-message").filter({ hasText: "No problems detected" }).waitFor();
});

pageTest("an invalid query shows an error", { expected: [/400/] }, async (page) => {
  await open(page, fleet.first);
  await explain(page, "client=c1 client=c2");
  await headline(page, "Fact client is given twice");
  await explain(page, "x".repeat(1025));
  await headline(page, /at most 1024 bytes/);
});

pageTest("shows the requests by front end of all nodes", {}, async (page) => {
  await open(page, fleet.first);
  const rates = async () => {
    await fleet.check(fleet.first, { client: "c1" });
    assert.match(await fleet.checkOverResp("c1"), /^\*7\r\n/);
    return page.locator("#front-ends").textContent();
  };
  const isShown = (text) => /^Requests by front end: HTTP [\d.<]+\/s · RESP [\d.<]+\/s$/.test(text) && !/ 0\/s/.test(text);
  await until(rates, isShown);
});
