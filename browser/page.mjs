// A browser at the dashboard. Whatever it complains about is kept, so that a test can hold that it did not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { ADMIN_TOKEN } from "./fleet.mjs";

const PROGRAM = process.env.TOLLGATE_CHROMIUM ?? "/usr/bin/chromium";

export const launch = () => chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });

const watch = async (page, complaints) => {
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  await page.addInitScript(() =>
    addEventListener("securitypolicyviolation", (event) => {
      console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`);
    }),
  );
};

// A test with a page of its own. It fails if the browser complains of anything but what is `expected`, such as the
// answer 401 that a wrong token has.
export const pageTest = (name, { expected = [], ...options }, body) =>
  test(name, { timeout: 60_000 }, async () => {
    const browser = await launch();
    try {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      context.setDefaultTimeout(20_000);
      const page = await context.newPage();
      const complaints = [];
      await watch(page, complaints);
      await body(page);
      const others = complaints.filter((text) => !expected.some((known) => known.test(text)));
      assert.deepEqual(others, [], "the browser complained");
    } finally {
      await browser.close();
    }
  });

// Shown, and told of by the stream.
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

export const ask = async (page, text) => {
  await page.locator("#why-input").fill(text);
  await page.locator("#why-input").press("Enter");
};

// The row of a table that has all these texts.
export const row = (page, place, ...texts) =>
  texts.reduce((rows, hasText) => rows.filter({ hasText }), page.locator(`${place} tbody tr`));

// What the headline of Why? comes to say.
export const headline = async (page, wanted) => {
  await page.locator("#why-headline").filter({ hasText: wanted }).waitFor();
};

// Asks until what is answered is as wanted; each answer is a wait of its own.
export const until = async (ask, isWanted) => {
  const end = Date.now() + 20_000;
  let answer = await ask();
  while (!isWanted(answer)) {
    assert.ok(Date.now() < end, `not in time: ${JSON.stringify(answer)}`);
    answer = await ask();
  }
  return answer;
};
