// Entries of a directory, as the page keeps them.

import { encode } from "./names.js";

// compact keeps of an entry what the page shows. Its ref is kept only if it does not follow from its
// name: there may be 100,000 of them.
export function compact(entry, directory) {
  const { name, type, target, size: bytes, allocated, mode: bits, uid, gid } = entry;
  const kept = { name, type, size: bytes, allocated, mode: bits, uid, gid, time: Date.parse(entry.mtime) };
  if (target !== undefined) kept.target = target;
  if (entry.ref !== refOf(kept, directory)) kept.ref = entry.ref;
  return kept;
}

// refOf returns the path of an entry of a directory.
export function refOf(entry, directory) {
  if (entry.ref !== undefined) return entry.ref;
  return directory === "" ? encode(entry.name) : `${directory}/${encode(entry.name)}`;
}

// directoriesFirst moves directories to the front, in place; all else stays in its order.
export function directoriesFirst(entries) {
  const others = [];
  let n = 0;
  for (const e of entries) {
    if (e.type === "directory") entries[n++] = e;
    else others.push(e);
  }
  for (const e of others) entries[n++] = e;
  return entries;
}
