// A search in the files of volumes: what is asked, the answer as it comes, and what was not searched.

import { count, counted, notNodes, size } from "./format.js";
import { Problem } from "./problem.js";

// mostLines bounds the lines that are kept, and mostRecord the bytes of a record: one that is longer is made up.
export const mostLines = 5000;
const mostRecord = 64 << 10;

const jobLabel = "batch.kubernetes.io/job-name";
const validOf = /^([a-z][a-z0-9]*)\/([a-z0-9]([-.a-z0-9]*[a-z0-9])?)$/;

// selects returns the parameters that select the volumes of a pod, a job, or another owner of pods: "job/nightly". Empty text selects
// all, and null says that the text is none of these.
export function selects(of) {
  if (of === "") return {};
  const match = validOf.exec(of);
  if (!match || match[1] === "pvc") return null;
  if (match[1] === "job") return { labelSelector: `${jobLabel}=${match[2]}` };
  return { fieldSelector: match[1] === "pod" ? `spec.podName=${match[2]}` : `spec.owner=${of}` };
}

// commonOf returns the owner or the pod that all volumes belong to; empty if there is none.
export function commonOf(volumes) {
  if (volumes.length === 0) return "";
  const same = (of) => volumes.every((v) => of(v) === of(volumes[0])) && selects(of(volumes[0])) ? of(volumes[0]) : "";
  return same((v) => v.owner) || same((v) => `pod/${v.pod}`);
}

// records yields the records of an answer. One that ends before its end is a problem.
export async function* records(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop();
      if (rest.length > mostRecord) throw new SyntaxError("a record is too long");
      for (const line of lines) {
        const record = JSON.parse(line);
        yield record;
        if (record.end) return;
      }
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ status: 504, message: `The answer to the search was cut: ${error.message}` });
  } finally {
    reader.cancel().catch(() => {});
  }
  throw new Problem({ status: 504, message: "The answer to the search was cut." });
}

// Found is what a search has found by now.
export class Found {
  // volumes are those in which something was found, by their addresses, each with its lines.
  volumes = new Map();
  lines = 0;
  sums = null;
  end = null;
  // full: there is more than is kept. stopped: a person has ended it.
  full = false;
  stopped = false;
  problem = null;

  // take takes the next record, and returns the line that is new and its volume, if it has one.
  take({ volume, found, progress, end }) {
    if (volume) {
      const { namespace, name } = volume.metadata;
      const key = `${namespace}/${name}`;
      if (!this.volumes.has(key)) this.volumes.set(key, { volume, lines: [] });
      this.at = this.volumes.get(key);
    }
    if (progress || end) this.sums = progress ?? end;
    if (end) this.end = end;
    if (!found || !this.at) return null;
    if (this.lines === mostLines) {
      this.full = true;
      return null;
    }
    this.lines++;
    this.at.lines.push(found);
    return { line: found, of: this.at };
  }

  get over() {
    return this.full || this.stopped || Boolean(this.end || this.problem);
  }

  // status says in words how far it is.
  status() {
    const found = this.lines === 0 ? (this.end ? "Nothing was found" : "Nothing yet")
      : `${this.full ? "The first " : ""}${counted(this.lines, "line")} in ${counted([...this.volumes.values()].filter((v) => v.lines.length > 0).length, "volume")}`;
    const { sums } = this;
    const searched = sums ? `, searched ${counted(sums.files, "file")} of ${counted(sums.volumes, "volume")}, ${size(sums.bytes)}` : "";
    if (this.full) return `${found}; there are more: look for less`;
    return found + (this.over ? "" : ", searching…") + (this.stopped ? ", cancelled" : "") + searched;
  }
}

const budgets = { bytes: "bytes", files: "files", time: "time", lines: "matches" };

// notSearched says what was not searched, in the words of kubectl katbox grep; empty if all was.
export function notSearched(end) {
  const parts = [];
  const add = (n, one, many) => n > 0 && parts.push(n === 1 ? `1 ${one}` : `${count(n)} ${many}`);
  add(end.binary, "file that is no text", "files that are no text");
  if (end.archivedMore && !end.archived) parts.push("archived volumes, it is not known how many");
  else if (end.archivedMore) parts.push(`more than ${count(end.archived)} archived volumes`);
  else add(end.archived, "archived volume", "archived volumes");
  add((end.unreadable ?? 0) - (end.broken ?? 0), "file that could not be read", "files that could not be read");
  add(end.broken, "volume that could not be read", "volumes that could not be read");
  add(end.deep, "file whose path is too long", "files whose paths are too long");
  add(end.lost, "volume that went or is used again", "volumes that went or are used again");
  for (const [name, what] of Object.entries(budgets)) {
    const where = `where the most of ${what} was reached`;
    const inArchive = end.archiveStopped === name;
    if (inArchive) parts.push(`the archive, ${where}, and the volumes of each namespace that were retained first are left`);
    add((end.stopped?.[name] ?? 0) - (inArchive ? 1 : 0), `node ${where}, where the volumes that were retained first are left`, `nodes ${where}, where the volumes that were retained first are left`);
  }
  for (const { node, reason } of end.missing ?? []) if (notNodes.includes(node)) parts.push(`${node} (${reason})`);
  const missing = (end.missing ?? []).filter(({ node }) => !notNodes.includes(node)).map(({ node, reason }) => `${node}: ${reason}`);
  const all = missing.length + (end.missingMore ?? 0);
  if (end.missingMore > 0) missing.push(`and ${count(end.missingMore)} more`);
  if (all > 0) parts.push(`${count(all)} of ${count(Math.max(all, end.nodes ?? 0))} nodes (${missing.join(", ")})`);
  if (end.longLines > 0) parts.push(`what crosses a multiple of 64 KiB in ${count(end.longLines)} long lines`);
  return parts.join("; ");
}
