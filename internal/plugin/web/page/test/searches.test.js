import assert from "node:assert/strict";
import test from "node:test";

import { commonOf, Found, mostLines, notSearched, records, selects } from "../searches.js";
import { format, parse } from "../route.js";

// streamOf is an answer that comes in pieces.
function streamOf(...pieces) {
  return new ReadableStream({
    start(to) {
      for (const piece of pieces) to.enqueue(typeof piece === "string" ? new TextEncoder().encode(piece) : piece);
      to.close();
    },
  });
}

async function all(body) {
  const found = [];
  for await (const record of records(body)) found.push(record);
  return found;
}

test("records come in pieces of any size", async () => {
  const text = '{"volume":{"metadata":{"namespace":"ci","name":"a"}}}\n{"found":{"file":"log","line":1,"text":"é"}}\n{"end":{"files":1}}\n';
  const bytes = new TextEncoder().encode(text);
  for (const length of [1, 2, 3, 7, 1000]) {
    const pieces = [];
    for (let i = 0; i < bytes.length; i += length) pieces.push(bytes.subarray(i, i + length));
    const found = await all(streamOf(...pieces));
    assert.equal(found.length, 3);
    assert.equal(found[1].found.text, "é");
  }
});

test("an answer that is cut, or made up, is a problem", async () => {
  for (const pieces of [[], ['{"progress":{}}\n'], ['{"end":{}'], ["<html>\n"], ["x".repeat(70_000)]]) {
    await assert.rejects(all(streamOf(...pieces)), (problem) => problem.status === 504);
  }
  const failing = new ReadableStream({ start: (to) => to.error(new TypeError("network error")) });
  await assert.rejects(all(failing), /cut: network error/);
});

test("a reader that stops ends the search", async () => {
  let cancelled = false;
  const endless = new ReadableStream({
    pull: (to) => to.enqueue(new TextEncoder().encode('{"progress":{"files":1}}\n')),
    cancel: () => { cancelled = true; },
  });
  for await (const record of records(endless)) {
    assert.equal(record.progress.files, 1);
    break;
  }
  assert.ok(cancelled);
});

const volume = (name) => ({ metadata: { namespace: "ci", name }, spec: {}, status: {} });

test("what was found is kept by volume, up to a bound", () => {
  const found = new Found();
  assert.equal(found.take({ found: { file: "a" } }), null);
  found.take({ volume: volume("a") });
  assert.equal(found.take({ found: { file: "x", line: 1 } }).of.volume.metadata.name, "a");
  found.take({ volume: volume("b") });
  found.take({ found: { file: "y" } });
  found.take({ volume: volume("a") });
  found.take({ found: { file: "x", line: 2 } });
  assert.equal(found.status(), "3 lines in 2 volumes, searching…");
  found.take({ end: { files: 1200, volumes: 2, bytes: 2048 } });
  assert.equal(found.status(), "3 lines in 2 volumes, searched 1,200 files of 2 volumes, 2.0 KiB");
  assert.equal(found.volumes.get("ci/a").lines.length, 2);
  for (let i = found.lines; i < mostLines; i++) assert.ok(found.take({ found: { file: "x" } }));
  assert.ok(!found.full);
  assert.equal(found.take({ found: { file: "x" } }), null);
  assert.ok(found.full && found.over);
  assert.match(found.status(), /^The first 5,000 lines in 2 volumes; there are more/);
});

test("the status of a search that has found nothing", () => {
  const found = new Found();
  assert.equal(found.status(), "Nothing yet, searching…");
  found.stopped = true;
  assert.equal(found.status(), "Nothing yet, cancelled");
});

test("what was not searched is said", () => {
  assert.equal(notSearched({}), "");
  assert.equal(notSearched({ binary: 1, archived: 12, unreadable: 3, broken: 1, lost: 2, nodes: 5, stopped: { time: 1 }, missing: [{ node: "n1", reason: "Busy" }, { node: "the archive", reason: "Failed" }], missingMore: 1 }),
    "1 file that is no text; 12 archived volumes; 2 files that could not be read; 1 volume that could not be read; 2 volumes that went or are used again; 1 node where the most of time was reached, where the volumes " +
    "that were retained first are left; the archive (Failed); 2 of 5 nodes (n1: Busy, and 1 more)");
  assert.equal(notSearched({ archived: 1000, archivedMore: true }), "more than 1,000 archived volumes");
  assert.equal(notSearched({ archivedMore: true }), "archived volumes, it is not known how many");
  assert.equal(notSearched({ stopped: { bytes: 2, time: 1 }, archiveStopped: "bytes" }),
    "the archive, where the most of bytes was reached, and the volumes of each namespace that were retained first are left; " +
    "1 node where the most of bytes was reached, where the volumes that were retained first are left; " +
    "1 node where the most of time was reached, where the volumes that were retained first are left");
});

test("jobs and pods are selected", () => {
  assert.deepEqual(selects(""), {});
  assert.deepEqual(selects("job/nightly"), { labelSelector: "batch.kubernetes.io/job-name=nightly" });
  assert.deepEqual(selects("pod/a.b"), { fieldSelector: "spec.podName=a.b" });
  assert.deepEqual(selects("workflow/etl-x7k2q"), { fieldSelector: "spec.owner=workflow/etl-x7k2q" });
  for (const bad of ["nightly", "job/", "job/a,b=c", "pvc/data", "pod/A", "a,b/c"]) assert.equal(selects(bad), null);
});

test("what is shown may be of one owner or pod", () => {
  const v = (owner, pod) => ({ owner, pod });
  assert.equal(commonOf([]), "");
  assert.equal(commonOf([v("job/a", "a-1"), v("job/a", "a-2")]), "job/a");
  assert.equal(commonOf([v("replicaset/w", "w-1"), v("replicaset/w", "w-2")]), "replicaset/w");
  assert.equal(commonOf([v("pvc/d", "w-1"), v("pvc/d", "w-1")]), "pod/w-1");
  assert.equal(commonOf([v("job/a", "a-1"), v("job/b", "b-2")]), "");
  assert.equal(commonOf([v("", ""), v("", "")]), "");
});

test("the address of a search", () => {
  const route = { namespace: "ci", view: "search", q: "a+b &", of: "job/x", files: "*.log", flags: "ia" };
  const parsed = parse(format(route));
  for (const [key, value] of Object.entries(route)) assert.equal(parsed[key], value);
});
