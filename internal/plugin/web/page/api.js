// The requests to the server of the page, which passes those for resources on to the cluster.

import { Problem, problemOf } from "./problem.js";
import { everywhere } from "./route.js";

// The key of the page. Cookies go to all ports of a machine; this key is known to the page's origin
// alone. The server gives it once, in the fragment of the first address, which leaves the history.

const place = "katbox-key";
const given = /^#key=([\w-]+)$/.exec(location.hash);
let kept = given?.[1] ?? "";
try {
  if (given) localStorage.setItem(place, kept);
  else kept = localStorage.getItem(place) ?? "";
} catch {
  // The browser keeps nothing: the key holds until the page is closed.
}
if (given) history.replaceState(null, "", location.pathname);

// key is the value of the header Katbox-Page, without which the server refuses requests for data.
const key = kept;

const base = "/apis/katbox.io/v1alpha1";
// tries is how often a request is sent that the server has no room for.
const tries = 4;

// link says whether the program behind the page answers. changed is called when that changes.
export const link = { there: true, changed: () => {} };

function noticed(there) {
  if (there === link.there) return;
  link.there = there;
  link.changed();
}

// send sends one request. Another origin cannot set the header without asking first.
async function send(path, { signal, method = "GET", body, type = "application/json" } = {}) {
  let answer;
  try {
    const headers = { "Katbox-Page": key };
    if (body) headers["Content-Type"] = type;
    answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    noticed(false);
    throw new Problem({ status: 0, message: error.message });
  }
  noticed(true);
  if (answer.ok) return answer;
  throw problemOf(answer.status, answer.headers, await answer.text().catch(() => ""));
}

// patient sends a request that changes nothing, again after a pause if there are too many at once.
async function patient(path, options) {
  for (let i = 1; ; i++) {
    try {
      return await send(path, options);
    } catch (problem) {
      if (problem.status !== 429 || i === tries) throw problem;
      await pause(1000 * Math.min(5, Math.max(1, problem.retryAfter)), options?.signal);
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      failed(new DOMException("left", "AbortError"));
    }, { once: true });
  });
}

function query(params) {
  const set = Object.entries(params).filter(([, value]) => value !== undefined && value !== "" && value !== 0);
  return set.length === 0 ? "" : `?${set.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}

// The server refuses other names without saying why.
const validNamespace = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const validName = /^[a-z0-9][-.a-z0-9]{0,251}[a-z0-9]$/;

function checkNamespace(namespace) {
  if (!validNamespace.test(namespace)) throw new Problem({ status: 400, message: `“${namespace}” is not the name of a namespace.` });
}

function volumePath({ namespace, name }) {
  checkNamespace(namespace);
  if (!validName.test(name)) throw new Problem({ status: 400, message: `“${name}” is not the name of a retained volume.` });
  return `${base}/namespaces/${encodeURIComponent(namespace)}/retainedvolumes/${encodeURIComponent(name)}`;
}

// json reads an answer; one that ends early is a problem like no answer.
async function json(answer) {
  try {
    return await answer.json();
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem({ status: 0, message: error.message });
  }
}

// session tells what the page was started for.
export async function session() {
  return json(await send("/session"));
}

// alive asks whether the program is still there. That does not keep it from ending.
export async function alive() {
  await send("/alive").catch(() => {});
}

// namespaces returns names to choose among, and whether there are no others.
export async function namespaces() {
  return json(await send("/namespaces"));
}

// list returns a page of retained volumes, or of those that are gone, and what the server warns of. pod, the spec of a
// volume, selects the volumes of its pod.
export async function list(namespace, { gone = false, pod = null, limit, next, signal }) {
  if (namespace !== everywhere) checkNamespace(namespace);
  const where = namespace === everywhere ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const fieldSelector = gone ? "status.phase=Gone" : pod ? `spec.podUID=${pod.podUID},spec.nodeName=${pod.nodeName}` : "";
  const answer = await patient(`${base}${where}/retainedvolumes${query({ fieldSelector, limit, continue: next })}`, { signal });
  const page = await json(answer);
  onward(next, page.metadata?.continue);
  return { page, warnings: warningsOf(answer.headers.get("Warning") ?? "") };
}

// onward refuses a page after which the same page would follow, again and again.
function onward(asked, next) {
  if (asked && asked === next) throw new Problem({ status: 500, message: "The cluster’s list does not come to its end." });
}

// warningsOf returns the texts of a Warning header.
export function warningsOf(header) {
  return [...header.matchAll(/\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text.replace(/\\(.)/g, "$1"));
}

export async function volume(id, signal) {
  return json(await patient(volumePath(id), { signal }));
}

export async function remove(id) {
  await send(volumePath(id), { method: "DELETE" });
}

async function patch(id, spec) {
  return json(await send(volumePath(id), { method: "PATCH", body: { spec }, type: "application/merge-patch+json" }));
}

// pin keeps a volume at least until a time, and unpin takes a pin or a release back. They return the volume.
export function pin(id, until, reason) {
  return patch(id, { keepUntil: new Date(until).toISOString(), keepReason: reason });
}

export function unpin(id) {
  return patch(id, { keepUntil: null });
}

// release lets a volume go after the grace of its node. A gateway that takes no notice of the grace would
// delete it: it is asked before.
export async function release(id, reason) {
  const path = (dryRun) => `${volumePath(id)}${query({ gracePeriodSeconds: 1, reason, dryRun })}`;
  const said = await json(await send(path("All"), { method: "DELETE" }));
  if (!said.message?.startsWith("released")) throw new Problem({ status: 501, message: "It would delete the volume at once." });
  await send(path(), { method: "DELETE" });
}

// files returns a page of a directory, with as many levels of those in it as depth says.
export async function files(id, { ref, limit, next, depth, signal }) {
  const page = await json(await patient(`${volumePath(id)}/files${query({ path: ref, limit, depth, continue: next })}`, { signal }));
  onward(next, page.continue);
  return page;
}

// entry describes one file or directory.
export async function entry(id, ref, signal) {
  const found = await json(await patient(`${volumePath(id)}/files${query({ path: ref, stat: "true" })}`, { signal }));
  return found.entries[0];
}

// bytes reads a part of a file: offset and limit, or tailLines. It returns the size of the whole file,
// where the part begins, and whether the file begins with text.
export async function bytes(id, { ref, offset, limit, tailLines, signal }) {
  const answer = await patient(`${volumePath(id)}/log${query({ path: ref, offset, limit, tailLines })}`, { signal });
  let data;
  try {
    data = new Uint8Array(await answer.arrayBuffer());
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem({ status: 0, message: error.message });
  }
  return {
    data,
    size: Number(answer.headers.get("Katbox-Size") ?? data.length),
    offset: Number(answer.headers.get("Katbox-Offset") ?? offset ?? 0),
    text: (answer.headers.get("Content-Type") ?? "").startsWith("text/plain"),
  };
}

// grep begins a search in the files of volumes, and returns the bytes of the answer as they come. selects are the parameters that
// select the volumes, and what those that say what is looked for.
export async function grep(namespace, { selects, what, signal }) {
  if (namespace !== everywhere) checkNamespace(namespace);
  const where = namespace === everywhere ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const answer = await patient(`${base}${where}/retainedvolumes/-/log${query({ ...selects, ...what })}`, { signal });
  return answer.body;
}

// ticket returns an address on the origin for raw bytes. It serves once, soon: a "download" of a file, which may
// go on when it was cut, an "archive" of a directory, or an "image". With it comes the size of the file in bytes; -1
// for an archive.
export async function ticket({ namespace, name }, ref, kind) {
  return json(await send("/tickets", { method: "POST", body: { namespace, name, path: ref, kind } }));
}
