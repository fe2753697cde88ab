// The page of `tollgate replay --html`: no network, no horizontal scrolling, light and dark, hostile keys.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { pageTest } from "./page.mjs";

const directory = mkdtempSync(join(tmpdir(), "tollgate-replay-"));
after(() => rmSync(directory, { recursive: true }));

const hostile = `"><img src="http://192.0.2.1/x" onerror="document.title='run'">${"w".repeat(500)}`;
const policy = join(directory, "policy.yaml");
writeFileSync(policy, "version: 1\nrules: [{ name: login, match: { path: /login }, per: [client], limits: [3/min] }]\n");
const log = join(directory, "access.log");
const line = (second) =>
  JSON.stringify({ time: 1791633336 + second, ip: second % 3 ? hostile : "10.0.0.1", path: second % 2 ? "/login" : "/" });
writeFileSync(log, Array.from({ length: 600 }, (_, second) => `${line(second)}\n`).join(""));
const page = join(directory, "report.html");
execFileSync(process.env.TOLLGATE_BIN, ["replay", "--policy", policy, "--html", page, log]);

const backgrounds = new Set();
for (const colorScheme of ["light", "dark"]) {
  for (const width of [390, 1280]) {
    pageTest(
      `replay page fits ${width} px in the ${colorScheme} scheme and loads nothing`,
      { viewport: { width, height: 844 }, colorScheme },
      async (tab) => {
        const requests = [];
        tab.on("request", (request) => requests.push(request.url()));
        await tab.goto(`file://${page}`);
        await tab.getByText("Most refused keys").waitFor();
        assert.deepEqual(requests, [`file://${page}`]);
        assert.equal(await tab.title(), `Replay of ${policy}`);
        assert.equal(await tab.locator("img, script").count(), 0);
        assert.ok((await tab.locator("svg .refused").count()) > 0);
        assert.ok((await tab.locator("svg .curve").count()) > 0);
        const [wide, window] = await tab.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= window, `content of ${wide} px on a screen of ${window} px`);
        backgrounds.add(await tab.evaluate(() => getComputedStyle(document.body).backgroundColor));
        if (colorScheme === "dark") assert.equal(backgrounds.size, 2, "light and dark differ");
      },
    );
  }
}
