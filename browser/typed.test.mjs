// What people type, as the served modules read it.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { open, pageTest } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

// Calls a function of one of the page's own files; what it throws is its message.
const call = (page, file, name, ...values) =>
  page.evaluate(
    async ([from, wanted, given]) => {
      const module = await import(from);
      try {
        return module[wanted](...given);
      } catch (error) {
        return error.message;
      }
    },
    [`/dashboard/${file}`, name, values],
  );

pageTest("a question is a key, or facts", {}, async (page) => {
  await open(page, fleet.first);
  const read = (text) => call(page, "question.js", "readQuestion", text);
  assert.deepEqual(await read(" user:1 "), { key: "user:1" });
  assert.deepEqual(await read("two words"), { key: "two words" });
  assert.deepEqual(await read("https://x?a=b"), { key: "https://x?a=b" });
  assert.deepEqual(await read('"a=b"'), { key: "a=b" });
  assert.deepEqual(await read('client=c1 path="/a b" header:x=1=2'), {
    facts: { client: "c1", path: "/a b", "header:x": "1=2" },
  });
  assert.deepEqual(await read("client=c1 tenant=acme"), { facts: { client: "c1" }, tenant: "acme" });
  assert.deepEqual(await read("<img src=x onerror=y>"), { key: "<img src=x onerror=y>" });
  assert.match(await read("client=c1 path"), /is no fact/);
  assert.match(await read("client=c1 client=c2"), /given twice/);
  assert.match(await read('client="\\x"'), /not well quoted/);
  assert.match(await read("  "), /Type a key/);
});

pageTest("what is written for a request reads as that request", {}, async (page) => {
  await open(page, fleet.first);
  for (const value of ["c1", "a b", 'q"\\', "\u202eabc\u0000\n", "=", '"', "😀 \u{e0001}", "\u00a0"]) {
    const text = await call(page, "question.js", "writeQuestion", { client: value, path: "/x" }, "t");
    assert.deepEqual(await call(page, "question.js", "readQuestion", text), {
      facts: { client: value, path: "/x" },
      tenant: "t",
    });
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u);
  }
});

pageTest("limits read as the policy writes them", {}, async (page) => {
  await open(page, fleet.first);
  const read = (text, known) => call(page, "rates.js", "readLimits", text, known);
  assert.deepEqual(await read("20/min, 5/250ms 0 3-at-once"), [
    { limit: 20, window_ms: 60_000 },
    { limit: 5, window_ms: 250 },
    { limit: 0, window_ms: 60_000 },
    { limit: 3, algorithm: "concurrency" },
  ]);
  const known = [
    { limit: 20, window_ms: 60_000, burst: 40, name: "pace" },
    { limit: 3, window_ms: null, algorithm: "concurrency" },
  ];
  assert.equal(await call(page, "rates.js", "writeLimits", known), "20/min 3-at-once");
  assert.deepEqual(
    await read("20/min 3-at-once", known),
    [known[0], { limit: 3, algorithm: "concurrency" }],
    "what no word tells is kept",
  );
  for (const wrong of ["20/month", "20", "-1/s", "1.5/s", "", "20/min x"])
    assert.equal(typeof (await read(wrong)), "string", wrong);
});

pageTest("times are rounded so that nobody comes too early", {}, async (page) => {
  await open(page, fleet.first);
  const told = await Promise.all(
    [0.2, 999, 1001, 9_950, 10_001, 59_001, 61_000, 3_600_000, 90_061_000].map((ms) =>
      call(page, "format.js", "duration", ms),
    ),
  );
  assert.deepEqual(told, ["1 ms", "999 ms", "1.1 s", "10 s", "11 s", "1 min", "1 min 1 s", "1 h", "1 d 1 h"]);
});
