import assert from "node:assert/strict";
import test from "node:test";

// What the modules ask of a browser when they are loaded.
globalThis.location = { hash: "" };
globalThis.localStorage = { getItem: () => null };
const { alive, files, link, list, pin, release, unpin } = await import("../api.js");
const { holdInFull } = await import("../facts.js");
const { explain } = await import("../problem.js");
const { compact } = await import("../volumestore.js");

const id = { namespace: "ci", name: "nightly-x7k2p.q3fd7k2m9c4a" };

function answering(body) {
  globalThis.fetch = async () => new Response(JSON.stringify(body));
}

test("a list that goes round in a circle ends with a problem", async () => {
  answering({ items: [], metadata: { continue: "a" } });
  assert.equal((await list("ci", { limit: 1, next: "" })).page.metadata.continue, "a");
  await assert.rejects(list("ci", { limit: 1, next: "a" }), /does not come to its end/);
  answering({ items: [], metadata: {} });
  await list("ci", { limit: 1, next: "a" });

  answering({ entries: [], continue: "a" });
  assert.equal((await files(id, { ref: "/", limit: 1, next: "" })).continue, "a");
  await assert.rejects(files(id, { ref: "/", limit: 1, next: "a" }), /does not come to its end/);
  answering({ entries: [] });
  await files(id, { ref: "/", limit: 1, next: "a" });
});

test("a volume is found by its outcome and by what a person decided", () => {
  const metadata = { namespace: "ci", name: "a.b" };
  const plain = compact({ metadata, spec: {}, status: { phase: "Retained" } });
  assert.equal(plain.outcome, "");
  assert.equal(plain.hold, null);
  const pinned = compact({
    metadata, spec: {}, status: { outcome: "Failed", hold: { kind: "Pinned", until: "2026-11-24T03:00:00Z", by: "kim", why: "post\u001bmortem" } },
  });
  assert.match(pinned.text, /failed\npinned$/);
  assert.equal(holdInFull(pinned.hold), "until 2026-11-24 03:00 by kim: post\\x1bmortem");
  assert.equal(holdInFull({ until: pinned.hold.until, by: "", why: "" }), "until 2026-11-24 03:00");
});

test("a volume that is gone is found by why it went, and a retained one has nothing of that", () => {
  const metadata = { namespace: "ci", name: "web-0.q3fd7k2m9c4a" };
  const spec = { podName: "web-0", podUID: "5f1c", nodeName: "n1" };
  const at = "2026-11-22T03:00:00Z";
  const gone = compact({ metadata, spec, status: { retainedAt: "2026-11-22T02:00:00Z", gone: { at, reason: "bytes", promised: "12h", kept: "1h", early: true } } });
  assert.deepEqual(gone.gone, { at: Date.parse(at), reason: "bytes", promised: "12h", kept: "1h", early: true, by: "", why: "", podUID: "5f1c" });
  assert.match(gone.text, /bytes: the disk ran short of space/);
  assert.equal(compact({ metadata, spec, status: {} }).gone, undefined);
});

test("volumes that are gone are asked for by their phase, those that are retained by nothing", async () => {
  const asked = [];
  globalThis.fetch = async (path) => {
    asked.push(path);
    return new Response(JSON.stringify({ items: [], metadata: {} }));
  };
  await list("ci", { gone: true, limit: 5000, next: "" });
  await list("*", { limit: 100, next: "" });
  assert.deepEqual(asked, [
    "/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes?fieldSelector=status.phase%3DGone&limit=5000",
    "/apis/katbox.io/v1alpha1/retainedvolumes?limit=100",
  ]);
});

// recording answers each request with the next of some answers, and keeps what was asked.
function recording(...answers) {
  const asked = [];
  globalThis.fetch = async (path, { method, headers, body }) => {
    asked.push([method, path.replace(/.*retainedvolumes/, ""), headers["Content-Type"], body]);
    return new Response(JSON.stringify(answers.shift() ?? {}));
  };
  return asked;
}

test("a pin and its end are patches", async () => {
  const asked = recording();
  await pin(id, Date.parse("2026-11-24T03:00:00Z"), "post-mortem");
  await unpin(id);
  const type = "application/merge-patch+json";
  assert.deepEqual(asked, [
    ["PATCH", `/${id.name}`, type, '{"spec":{"keepUntil":"2026-11-24T03:00:00.000Z","keepReason":"post-mortem"}}'],
    ["PATCH", `/${id.name}`, type, '{"spec":{"keepUntil":null}}'],
  ]);
});

test("a volume is released by a gateway that knows how, and never deleted instead", async () => {
  let asked = recording({ message: "released: the volume goes after the grace of its node" });
  await release(id, "all is clear");
  assert.deepEqual(asked.map(([method, path]) => `${method} ${path}`), [
    `DELETE /${id.name}?gracePeriodSeconds=1&reason=all%20is%20clear&dryRun=All`, `DELETE /${id.name}?gracePeriodSeconds=1&reason=all%20is%20clear`,
  ]);
  asked = recording({ kind: "Status", status: "Success" });
  await assert.rejects(release(id, ""), (problem) => /too old/.test(explain(problem, "delete", "ci").title));
  assert.deepEqual(asked.map(([, path]) => path), [`/${id.name}?gracePeriodSeconds=1&dryRun=All`]);
});

test("the end of the program is noticed once, and that it is there again", async () => {
  const said = [];
  link.changed = () => said.push(link.there);
  const gone = async () => {
    throw new TypeError("Failed to fetch");
  };
  globalThis.fetch = gone;
  await alive();
  await assert.rejects(list("ci", { limit: 1, next: "" }), { status: 0 });
  answering({ items: [], metadata: {} });
  await alive();
  await list("ci", { limit: 1, next: "" });
  assert.deepEqual(said, [false, true]);
  // A view that was left says nothing about the program.
  globalThis.fetch = async () => {
    throw new DOMException("left", "AbortError");
  };
  await assert.rejects(list("ci", { limit: 1, next: "" }), { name: "AbortError" });
  assert.deepEqual(said, [false, true]);
});
