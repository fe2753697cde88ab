// Logging in and out.
import assert from "node:assert/strict";
import { after } from "node:test";
import { ADMIN_TOKEN, READ_TOKEN, startFleet } from "./fleet.mjs";
import { headline, logIn, open, pageTest, row } from "./page.mjs";

const openFleet = await startFleet();
const closedFleet = await startFleet({ env: { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN, TOLLGATE_READ_TOKEN: READ_TOKEN } });
const bareFleet = await startFleet({ env: {} });
after(() => Promise.all([openFleet, closedFleet, bareFleet].map((fleet) => fleet.stop())));

const UNAUTHORISED = /401/;
const GONE = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET/;

pageTest("a wrong token is told to be wrong, and forgotten", { expected: [UNAUTHORISED] }, async (page) => {
  await open(page, openFleet.first);
  await logIn(page, { token: "a-token-that-nobody-has-0123456789" });
  await page.locator("#login-problem").filter({ hasText: "That token is not known here." }).waitFor();
  assert.equal(await page.locator("#token").inputValue(), "");
  assert.equal(await page.locator("#overrides-admin").isVisible(), false);
});

pageTest("logging out hides what needed the login", {}, async (page) => {
  await open(page, openFleet.first);
  assert.equal(await page.locator("#overrides-admin").isVisible(), false);
  await logIn(page);
  await page.locator("#overrides-admin").waitFor();
  await page.locator("#logout").click();
  await page.locator("#login-open").waitFor();
  await page.locator("#overrides-how").filter({ hasText: "Log in with the admin token" }).waitFor();
  assert.equal(await page.locator("#overrides-list tbody tr, #audit-list tbody tr").count(), 0);
});

pageTest("where reading needs a token there is only the login", { expected: [UNAUTHORISED] }, async (page) => {
  await page.goto(`${closedFleet.first}/#why=c1`);
  await page.locator("#login").waitFor();
  assert.equal(await page.locator("main").isVisible(), false);
  assert.equal(await page.locator("#connection").isVisible(), false, "nobody connects yet");
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

pageTest("a session that ends loses nothing that was typed", { expected: [UNAUTHORISED] }, async (page) => {
  await open(page, openFleet.first);
  await logIn(page, { name: "kim" });
  await page.locator("#override-client").fill("typed");
  await page.locator("#override-limits").fill("3/s");
  await page.context().clearCookies();
  await page.locator("#override-form button[type=submit]").click();
  await page.locator("#login-problem").filter({ hasText: "The session has ended." }).waitFor();
  await logIn(page, { name: "kim" });
  await page.locator("#override-form").waitFor();
  assert.equal(await page.locator("#override-client").inputValue(), "typed");
  await page.locator("#override-form button[type=submit]").click();
  await row(page, "#overrides-list", "typed", "3/s", "kim").waitFor();
});

pageTest("the token is nowhere to be found afterwards", {}, async (page) => {
  await open(page, openFleet.first);
  await logIn(page, { name: "kim" });
  await page.locator("#overrides-admin").waitFor();
  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
  );
  assert.ok(!kept.includes(ADMIN_TOKEN), kept);
  assert.equal(await page.locator("#token").inputValue(), "");
});

pageTest("without an admin token the page says how to get one", {}, async (page) => {
  await open(page, bareFleet.first);
  await page.locator("#overrides-how").filter({ hasText: "start the service with TOLLGATE_ADMIN_TOKEN" }).waitFor();
  assert.equal(await page.locator("#login-open").isVisible(), false);
});

pageTest("a node that comes back with a token offers the login by itself", { expected: [GONE] }, async (page) => {
  await open(page, bareFleet.first);
  assert.equal(await page.locator("#login-open").isVisible(), false);
  await bareFleet.replaceFirst({ TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN });
  await page.locator("#login-open").waitFor();
  await page.locator("#overrides-how").filter({ hasText: "Log in with the admin token" }).waitFor();
  await logIn(page);
  await page.locator("#overrides-admin").waitFor();
});
