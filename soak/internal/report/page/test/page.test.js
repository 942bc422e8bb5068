import assert from "node:assert/strict";
import test from "node:test";

import { amount, at, axis, clock, decades, rates, roundTicks, thin, timeStep } from "../scale.js";
import { apart, disk, latency, marks, strips } from "../strips.js";
import { pieces, Time, vertical } from "../chart.js";

test("ticks are round", () => {
  assert.deepEqual(roundTicks(0, 10), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(roundTicks(0, 0.7), [0, 0.2, 0.4, 0.6]);
  assert.deepEqual(roundTicks(-70, 4), [-60, -40, -20, 0]);
  assert.deepEqual(roundTicks(0, 1.05, 1), [0, 1]);
  assert.deepEqual(roundTicks(3, 3), [3]);
  assert.deepEqual(decades(0.1, 1000), [0.1, 1, 10, 100, 1000]);
  assert.deepEqual(decades(2, 2), [1, 10]);
  assert.deepEqual(axis(0, 3 * 2 ** 20, "bytes").map((tick) => amount(tick, "bytes")), ["0 B", "1 MiB", "2 MiB", "3 MiB"]);
});

test("a time axis has as many parts as there is room for", () => {
  assert.equal(timeStep(20, 9), 5);
  assert.equal(timeStep(8 * 3600, 9), 3600);
  assert.equal(timeStep(1e9, 9), 86400);
  assert.deepEqual(new Time(20, 360).ticks(), [0, 5, 10, 15, 20]);
  assert.deepEqual(new Time(20, 1000).ticks().length, 11);
  const time = new Time(20, 360);
  assert.equal(time.at(time.x(7)).toFixed(6), "7.000000");
  assert.equal(time.at(-5), 0);
  assert.equal(time.at(9999), 20);
});

test("numbers are short", () => {
  for (const [value, unit, want] of [[0.424, "ms", "0.42 ms"], [57.31, "ms", "57.3 ms"], [340.8, "ms", "341 ms"], [4060, "ms", "4.06 s"],
    [-10 * 2 ** 20, "bytes", "-10 MiB"], [1.5 * 2 ** 30, "bytes", "1.5 GiB"], [12, "bytes", "12 B"], [1234567, "count", "1,234,567"],
    [0.0666, "share", "0.07"], [11.92, "rate", "11.9"]]) assert.equal(amount(value, unit), want);
  for (const [seconds, want] of [[0, "0s"], [2.54, "2.5s"], [60, "1m"], [90, "1m30s"], [3600, "1h"], [3661, "1h1m1s"], [7205, "2h0m5s"]]) {
    assert.equal(clock(seconds), want);
  }
});

test("a long line keeps its peaks, its gaps and its order", () => {
  const long = Array.from({ length: 10000 }, (_, n) => [n, Math.sin(n)]);
  long[4321][1] = 99;
  long[7654][1] = -99;
  long[9000][1] = null;
  const got = thin(long, 90);
  assert.ok(got.length <= 90, `${got.length} points`);
  for (const n of [4321, 7654, 9000]) assert.ok(got.includes(long[n]), `point ${n}`);
  assert.ok(got.every((point, n) => n === 0 || got[n - 1][0] <= point[0]));
  assert.deepEqual(thin(long.slice(0, 50), 90), long.slice(0, 50));
  assert.deepEqual(pieces([[0, 1], [1, null], [2, null], [3, 2], [4, 3]]), [[[0, 1]], [[3, 2], [4, 3]]]);
  assert.deepEqual(pieces([[0, null]]), []);
});

test("a rate is taken over a span", () => {
  assert.deepEqual(rates([[0, 0], [2, 10], [2.01, 11], [3, 12]], 0.5), [[2, 5], [3, 2]]);
  assert.deepEqual(rates([[0, 0], [1, null], [2, 4]], 0.5), [[2, 2]]);
  assert.deepEqual(rates([], 0.5), []);
});

test("a value is the last before a time", () => {
  assert.deepEqual(at([[1, 5], [2, 6], [3, 7]], 2.9), [2, 6]);
  assert.equal(at([[1, 5]], 0.5), null);
});

test("latencies are the highest p99 and the middle p50 of their part", () => {
  const interval = (calls, p50_ms, p99_ms) => ({ calls, p50_ms, p99_ms });
  const chart = latency("Publish", [[0.1, interval(1, 9, 90)], [0.3, undefined], [0.4, interval(5, 2, 20)], [1.2, interval(1, 0, 7)], [60, interval(1, 3, 4)]], 1);
  const [p99, p50] = chart.lines;
  assert.deepEqual(p99.points, [[0.4, 90], [1.2, 7], [1.2, null], [60, 4]]);
  assert.deepEqual(p50.points, [[0.4, 2], [1.2, null], [60, 3]]);
});

test("what a run uses of a huge disk is drawn as a change", () => {
  const of = (first, second, headroom = 0.1) => disk("Inodes", "count", { workload: { headroom }, samples: [
    { seconds: 0, disk: { free: first, total: 1000 } }, { seconds: 1 }, { seconds: 2, disk: { free: second, total: 1000 } }] }, (d) => [d.free, d.total]);
  const whole = of(900, 100);
  assert.deepEqual([whole.lines[0].points, whole.limit, whole.top, whole.note], [[[0, 100], [2, 900]], 900, 1000, undefined]);
  assert.equal(of(900, 100, 0).limit, undefined);
  const change = of(900, 890);
  assert.deepEqual([change.lines[0].points, change.limit, change.note], [[[0, 0], [2, 10]], undefined, "100 of 1,000 at the beginning"]);
});

test("faults end when they did, at once, or with the run", () => {
  const { kinds, broken } = marks({ seconds: 10, fault_spans: [{ kind: "slow-disk", from: 3, what: "frozen" }, { kind: "__proto__", from: 1, to: 2 }, { kind: "clock-step", from: 4 }],
    samples: [{ seconds: 1, violations: 0 }, { seconds: 2, violations: 2 }, { seconds: 3, violations: 2 }] }, ["clock-step"]);
  assert.deepEqual(kinds.map(({ kind, ink, spans }) => [kind, ink, spans[0].from, spans[0].to, spans[0].open]),
    [["__proto__", "other", 1, 2, false], ["clock-step", "clock-step", 4, 4, false], ["slow-disk", "slow-disk", 3, 10, true]]);
  assert.deepEqual(broken, [2]);
});

test("only faults that cannot be told apart are left out", () => {
  const spans = (...all) => all.map(([from, to]) => ({ from, to }));
  assert.equal(apart(spans([100, 400], [100.1, 400.1]), 1).length, 1);
  for (const second of [[200, 300], [100.1, 500], [600, 600]]) assert.equal(apart(spans([100, 400], second), 1).length, 2);
});

test("a run without anything has no charts, and hardly anything has axes", () => {
  const run = { seconds: 0, samples: [], fault_spans: [], workload: { headroom: 0.2 } };
  assert.deepEqual(strips(run), []);
  const sample = { seconds: 0, calls: 0, errors: 0, mounted: 0, running: 0, retained: 0, expired: 0, evicted: 0, violations: 0 };
  for (const samples of [[sample], [sample, sample], [sample, { ...sample, seconds: 2, publish: { calls: 1, p50_ms: 0, p99_ms: 1000 } }],
    [{ ...sample, disk: { free_bytes: 0, total_bytes: 0, free_inodes: 0, total_inodes: 0, pressure: 1 } }]]) {
    for (const chart of strips({ ...run, samples }).flatMap((group) => group.strips)) {
      const { low, high, ticks, y } = vertical(chart, 0, 100);
      for (const value of [low, high, ...ticks, ...ticks.map(y), ...chart.lines.flatMap((line) => line.points.map((p) => y(p[1])))]) {
        assert.ok(Number.isFinite(value), `${chart.title}: ${value}`);
      }
    }
  }
});
