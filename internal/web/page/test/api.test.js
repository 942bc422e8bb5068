import assert from "node:assert/strict";
import test from "node:test";

// What the modules ask of a browser when they are loaded.
globalThis.location = { hash: "" };
globalThis.localStorage = { getItem: () => null };
const { files, list } = await import("../api.js");
const { holdInFull } = await import("../timeleft.js");
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
