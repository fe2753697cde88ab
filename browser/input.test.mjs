// Parsing and formatting of typed input by the served modules.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { open, pageTest } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

// Calls a function of a module of the page; returns the message of a thrown error.
const call = (page, file, name, ...values) =>
  page.evaluate(
    async ([path, functionName, args]) => {
      const module = await import(path);
      try {
        return module[functionName](...args);
      } catch (error) {
        return error.message;
      }
    },
    [`/dashboard/${file}`, name, values],
  );

pageTest("parses a query as a key or facts", {}, async (page) => {
  await open(page, fleet.first);
  const parse = (text) => call(page, "query.js", "parseQuery", text);
  assert.deepEqual(await parse(" user:1 "), { key: "user:1" });
  assert.deepEqual(await parse("two words"), { key: "two words" });
  assert.deepEqual(await parse("https://x?a=b"), { key: "https://x?a=b" });
  assert.deepEqual(await parse('"a=b"'), { key: "a=b" });
  assert.deepEqual(await parse('client=c1 path="/a b" header:x=1=2'), {
    facts: { client: "c1", path: "/a b", "header:x": "1=2" },
  });
  assert.deepEqual(await parse("client=c1 tenant=acme"), { facts: { client: "c1" }, tenant: "acme" });
  assert.deepEqual(await parse("<img src=x onerror=y>"), { key: "<img src=x onerror=y>" });
  assert.match(await parse("client=c1 path"), /is not a fact/);
  assert.match(await parse("client=c1 client=c2"), /given twice/);
  assert.match(await parse('client="\\x"'), /not a valid quoted value/);
  assert.match(await parse("  "), /Enter a client/);
  assert.deepEqual(await parse("GET /search"), { facts: { method: "GET", path: "/search" } });
  assert.deepEqual(await parse("c1 GET /search"), { facts: { client: "c1", method: "GET", path: "/search" } });
  assert.deepEqual(await parse("client=c1 tenant=acme POST /a"), {
    facts: { client: "c1", method: "POST", path: "/a" },
    tenant: "acme",
  });
  assert.deepEqual(await parse('"GET /search"'), { key: "GET /search" });
  assert.match(await parse("path=/a GET /b"), /given twice/);
});

pageTest("a formatted query parses as the same query", {}, async (page) => {
  await open(page, fleet.first);
  for (const value of ["c1", "a b", 'q"\\', "\u202eabc\u0000\n", "=", '"', "😀 \u{e0001}", "\u00a0"]) {
    const text = await call(page, "query.js", "formatQuery", { client: value, path: "/x" }, "t");
    assert.deepEqual(await call(page, "query.js", "parseQuery", text), {
      facts: { client: value, path: "/x" },
      tenant: "t",
    });
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u);
  }
});

pageTest("parses and formats limits", {}, async (page) => {
  await open(page, fleet.first);
  const parse = (text, known) => call(page, "rates.js", "parseLimits", text, known);
  assert.deepEqual(await parse("20/min, 5/250ms 0 3-concurrent"), [
    { limit: 20, window_ms: 60_000 },
    { limit: 5, window_ms: 250 },
    { limit: 0, window_ms: 60_000 },
    { limit: 3, algorithm: "concurrency" },
  ]);
  assert.deepEqual(await parse("3-at-once"), [{ limit: 3, algorithm: "concurrency" }]);
  const known = [
    { limit: 20, window_ms: 60_000, burst: 40, name: "pace" },
    { limit: 3, window_ms: null, algorithm: "concurrency" },
  ];
  assert.equal(await call(page, "rates.js", "formatLimits", known), "20/min 3-concurrent");
  assert.deepEqual(
    await parse("20/min 3-concurrent", known),
    [known[0], { limit: 3, algorithm: "concurrency" }],
    "fields that the text cannot express are kept",
  );
  assert.equal(await call(page, "rates.js", "formatLimits", [{ limit: 0, window_ms: 60_000 }]), "blocked");
  assert.deepEqual(await parse("blocked"), [{ limit: 0, window_ms: 60_000 }]);
  for (const invalid of ["20/month", "20", "-1/s", "1.5/s", "", "20/min x"])
    assert.equal(typeof (await parse(invalid)), "string", invalid);
});

pageTest("rounds ages down to one unit", {}, async (page) => {
  await open(page, fleet.first);
  const ages = [900, 2_999, 75_000, 7_300_000, 180_000_000];
  const texts = await Promise.all(ages.map((ms) => call(page, "format.js", "ago", ms)));
  assert.deepEqual(texts, ["just now", "2 s ago", "1 min ago", "2 h ago", "2 d ago"]);
});

pageTest("rounds waiting times up", {}, async (page) => {
  await open(page, fleet.first);
  const texts = await Promise.all(
    [0.2, 999, 1001, 9_950, 10_001, 59_001, 61_000, 3_600_000, 90_061_000].map((ms) =>
      call(page, "format.js", "duration", ms),
    ),
  );
  assert.deepEqual(texts, ["1 ms", "999 ms", "1.1 s", "10 s", "11 s", "1 min", "1 min 1 s", "1 h", "1 d 1 h"]);
});
