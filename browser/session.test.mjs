// Login and logout.
import assert from "node:assert/strict";
import { after } from "node:test";
import { ADMIN_TOKEN, READ_TOKEN, startFleet } from "./fleet.mjs";
import { headline, logIn, open, pageTest, row } from "./page.mjs";

const openFleet = await startFleet();
const closedFleet = await startFleet({ env: { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN, TOLLGATE_READ_TOKEN: READ_TOKEN } });
const tokenlessFleet = await startFleet({ env: {} });
after(() => Promise.all([openFleet, closedFleet, tokenlessFleet].map((fleet) => fleet.stop())));

const UNAUTHORISED = /401/;
const DISCONNECTED = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET/;

pageTest("a wrong token shows an error and is cleared", { expected: [UNAUTHORISED] }, async (page) => {
  await open(page, openFleet.first);
  await logIn(page, { token: "an-invalid-token-0123456789" });
  await page.locator("#login-problem").filter({ hasText: "The token is invalid." }).waitFor();
  assert.equal(await page.locator("#token").inputValue(), "");
  assert.equal(await page.locator("#overrides-admin").isVisible(), false);
});

pageTest("logout hides everything that requires the login", {}, async (page) => {
  await open(page, openFleet.first);
  assert.equal(await page.locator("#overrides-admin").isVisible(), false);
  await logIn(page);
  await page.locator("#overrides-admin").waitFor();
  await page.locator("#logout").click();
  await page.locator("#login-open").waitFor();
  await page.locator("#overrides-hint").filter({ hasText: "Log in with the admin token" }).waitFor();
  assert.equal(await page.locator("#overrides-list tbody tr, #audit-list tbody tr").count(), 0);
});

pageTest("a service with a read token shows only the login", { expected: [UNAUTHORISED] }, async (page) => {
  await page.goto(`${closedFleet.first}/#why=c1`);
  await page.locator("#login").waitFor();
  assert.equal(await page.locator("main").isVisible(), false);
  assert.equal(await page.locator("#connection").isVisible(), false, "no connection before the login");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.locator("#token").waitFor();
  await logIn(page, { token: READ_TOKEN });
  await headline(page, /Allowed now/);
  assert.equal(await page.locator("#overrides-admin").isVisible(), false);
  await page.locator("#logout").click();
  await page.locator("#login").waitFor();
  assert.equal(await page.locator("main").isVisible(), false);
});

pageTest("typed input survives an expired session", { expected: [UNAUTHORISED] }, async (page) => {
  await open(page, openFleet.first);
  await logIn(page, { name: "kim" });
  await page.locator("#override-client").fill("typed");
  await page.locator("#override-limits").fill("3/s");
  await page.locator("#override-rule").selectOption("once");
  await page.context().clearCookies();
  await page.locator("#override-form button[type=submit]").click();
  await page.locator("#login-problem").filter({ hasText: "The session has expired." }).waitFor();
  await logIn(page, { name: "kim" });
  await page.locator("#override-form").waitFor();
  assert.equal(await page.locator("#override-client").inputValue(), "typed");
  await page.locator("#override-form button[type=submit]").click();
  await page.getByRole("button", { name: "Set override", exact: true }).click();
  await row(page, "#overrides-list", "typed", "3/s", "kim").waitFor();
});

pageTest("the token is not stored in the browser", {}, async (page) => {
  await open(page, openFleet.first);
  await logIn(page, { name: "kim" });
  await page.locator("#overrides-admin").waitFor();
  const stored = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
  );
  assert.ok(!stored.includes(ADMIN_TOKEN), stored);
  assert.equal(await page.locator("#token").inputValue(), "");
});

pageTest("explains how to enable changes without an admin token", {}, async (page) => {
  await open(page, tokenlessFleet.first);
  await page.locator("#overrides-hint").filter({ hasText: "start the service with TOLLGATE_ADMIN_TOKEN" }).waitFor();
  assert.equal(await page.locator("#login-open").isVisible(), false);
});

pageTest("a node that restarts with a token offers the login", { expected: [DISCONNECTED] }, async (page) => {
  await open(page, tokenlessFleet.first);
  assert.equal(await page.locator("#login-open").isVisible(), false);
  await tokenlessFleet.replaceFirst({ TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN });
  await page.locator("#login-open").waitFor();
  await page.locator("#overrides-hint").filter({ hasText: "Log in with the admin token" }).waitFor();
  await logIn(page);
  await page.locator("#overrides-admin").waitFor();
});
