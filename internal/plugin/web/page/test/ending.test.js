import assert from "node:assert/strict";
import test from "node:test";

// What the modules ask of a browser when they are loaded.
globalThis.location = { hash: "" };
globalThis.localStorage = { getItem: () => null };
const { logOf, parseEnd, stateLine } = await import("../ending.js");

const bytes = (value) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));

test("what a program says of how a pod ended is read, and nothing is believed of it", () => {
  const end = parseEnd(bytes({
    phase: "Failed", reason: "Evicted", message: "disk", disruption: { reason: "TerminationByKubelet" }, containers: [
      { name: "prepare", kind: "init", state: "terminated", exitCode: 0 },
      { name: "late", state: "terminated", exitCode: 143, finished: "2026-11-30T05:00:09Z" },
      { name: "main", state: "terminated", exitCode: 137, reason: "OOMKilled", started: "2026-11-30T05:00:00Z", finished: "2026-11-30T05:00:05Z", restarts: 2, last: { exitCode: 1 } },
      { name: "sidecar", state: "running" },
    ],
  }));
  assert.deepEqual(end.containers.map(({ name }) => name), ["main", "late", "sidecar", "prepare"]);
  assert.equal(end.reason, "Evicted");
  assert.equal(end.disruption, "TerminationByKubelet");
  assert.match(stateLine(end.containers[0]), /^exit code 137 \(SIGKILL\), OOMKilled, 2026-.*, after 5s$/);
  assert.equal(stateLine(end.containers[2]), "running");
  assert.equal(stateLine(end.containers[0].last), "exit code 1");
  for (const none of ["", "null", "1", "\"x\"", "{", "\0", "x".repeat(65537), JSON.stringify({ message: "x".repeat(65536) })]) assert.equal(parseEnd(bytes(none)), null);
  for (const odd of [{}, [], { containers: 1 }, { containers: [null, 1, "x", []] }, { containers: { length: 1e9 } }, { disruption: "x" },
    { containers: [{ name: {}, kind: [], exitCode: "1", restarts: {}, signal: NaN, started: {}, finished: [], message: 1, last: 7 }] }]) {
    const { containers, reason, message } = parseEnd(bytes(odd));
    assert.equal(reason + message, "");
    for (const c of containers) assert.equal(c.name + c.kind + stateLine(c), "not known");
  }
  assert.equal(stateLine(parseEnd(bytes({ containers: [{ reason: "a\u001b[2J\u202eb\nc" }] })).containers[0]), "not known, a\\x1b[2J\\u202eb\\nc");
});

test("the log that says why is that of the container that failed first", () => {
  const file = (ref, size = 1, type = "file") => ({ ref, size, type });
  const end = (...containers) => parseEnd(bytes({ containers }));
  const entries = [file("a/0.log"), file("b/0.log"), file("b/2.log"), file("b/10.log"), file("b/11.log", 0), file("b/10.log.20261130-050000.gz"), file("c/0.log"), file("pod.json")];
  assert.equal(logOf(entries, null), "a/0.log");
  assert.equal(logOf(entries, end({ name: "b", exitCode: 1 }, { name: "a", exitCode: 0 })), "b/10.log");
  assert.equal(logOf(entries, end({ name: "quiet", exitCode: 1 }, { name: "c" }, { name: "a", kind: "init" })), "c/0.log");
  for (const odd of ["__proto__", "constructor", "../a"]) assert.equal(logOf(entries, end({ name: odd, exitCode: 1 })), "a/0.log");
  for (const odd of [[], [file("0.log")], [file("a/b/0.log")], [file("a/0.log", 1, "symlink")], [file("a/x.log")], [file("a/0.log", NaN)], [file("a/1234567890.log")]]) {
    assert.equal(logOf(odd, null), "");
  }
});
