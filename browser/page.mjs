// Browser helpers. Errors that the browser reports are collected and fail the test.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { ADMIN_TOKEN } from "./fleet.mjs";

const PROGRAM = process.env.TOLLGATE_CHROMIUM ?? "/usr/bin/chromium";

export const launch = () => chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });

const collectErrors = async (page, errors) => {
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  await page.addInitScript(() =>
    addEventListener("securitypolicyviolation", (event) => {
      console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`);
    }),
  );
};

// One browser for all tests of a file; each test has its own context.
let shared = null;
const sharedBrowser = () => (shared ??= launch());
after(async () => (await shared)?.close());

// A test with its own page. It fails if the browser reports an error that does not match `expected`, such as the status
// 401 of a wrong token.
export const pageTest = (name, { expected = [], ...options }, body) =>
  test(name, { timeout: 60_000 }, async () => {
    const browser = await sharedBrowser();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    try {
      context.setDefaultTimeout(20_000);
      const page = await context.newPage();
      const errors = [];
      await collectErrors(page, errors);
      await body(page);
      const unexpected = errors.filter((text) => !expected.some((pattern) => pattern.test(text)));
      assert.deepEqual(unexpected, [], "the browser reported errors");
    } finally {
      await context.close();
    }
  });

// Opens the dashboard and waits for the event stream.
export const open = async (page, url) => {
  await page.goto(url);
  await page.locator("#connection.live").waitFor();
};

export const logIn = async (page, { token = ADMIN_TOKEN, name = "" } = {}) => {
  if (!(await page.locator("#login").isVisible())) await page.locator("#login-open").click();
  await page.locator("#token").fill(token);
  await page.locator("#author").fill(name);
  await page.locator("#login-form button[type=submit]").click();
};

export const explain = async (page, text) => {
  await page.locator("#why-input").fill(text);
  await page.locator("#why-input").press("Enter");
};

// Rows of a table that contain all these texts.
export const row = (page, place, ...texts) =>
  texts.reduce((rows, hasText) => rows.filter({ hasText }), page.locator(`${place} tbody tr`));

// Waits for the headline of the "Why?" panel.
export const headline = async (page, wanted) => {
  await page.locator("#why-headline").filter({ hasText: wanted }).waitFor();
};

// Repeats a request until its result is accepted, for at most 20 s.
export const until = async (send, isAccepted) => {
  const deadline = Date.now() + 20_000;
  let result = await send();
  while (!isAccepted(result)) {
    assert.ok(Date.now() < deadline, `timed out; last result: ${JSON.stringify(result)}`);
    result = await send();
  }
  return result;
};
