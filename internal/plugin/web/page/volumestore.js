// The volumes of a list, as far as they are loaded, and what it lacks.

import { list } from "./api.js";
import { whyGone } from "./facts.js";
import { count, notNodes } from "./format.js";
import { visible } from "./names.js";

// firstPage is small, so that something is on the screen at once. The others are as large as one
// request may be without holding up the gateway.
const firstPage = 100;
const otherPages = 2000;
// goneMost is how many volumes are listed that are gone, in one page.
const goneMost = 5000;

export class VolumeStore {
  volumes = [];
  // complete says that all pages are loaded, remaining estimates how many volumes are not.
  complete = false;
  remaining = null;
  fleet = null;
  warnings = [];
  loadedAt = 0;

  // gone says that the volumes are those that are gone.
  constructor(namespace, { gone = false } = {}) {
    this.namespace = namespace;
    this.gone = gone;
  }

  // load loads all pages. changed is called after each of them.
  async load(changed, signal) {
    for (let next = ""; !this.complete;) {
      const { gone } = this;
      const limit = gone ? goneMost : this.volumes.length === 0 && next === "" ? firstPage : otherPages;
      const { page, warnings } = await list(this.namespace, { gone, limit, next, signal });
      for (const item of page.items) this.volumes.push(compact(item));
      next = page.metadata?.continue ?? "";
      this.complete = next === "";
      this.remaining = this.complete ? 0 : page.metadata?.remainingItemCount ?? null;
      this.fleet = page.fleet ?? this.fleet;
      this.warnings = warnings;
      this.loadedAt = Date.now();
      changed();
    }
  }

  // changed replaces a volume by what it is now.
  changed(volume) {
    this.volumes = this.volumes.map((old) => (old.namespace === volume.namespace && old.name === volume.name ? volume : old));
  }

  forget(name) {
    this.volumes = this.volumes.filter((volume) => volume.name !== name);
  }
}

// compact keeps of a volume what the page shows. Times are in milliseconds since 1970.
export function compact({ metadata, spec, status }) {
  const owner = spec.owner ? `${spec.owner.kind.toLowerCase()}/${spec.owner.name}` : "";
  const volume = {
    namespace: metadata.namespace, name: metadata.name,
    pod: spec.podName ?? "", volume: spec.volumeName ?? "", node: spec.poolName ? `pool/${spec.poolName}` : spec.nodeName ?? "",
    owner: visible(owner), guessed: spec.owner?.guessed === true, jobIndex: spec.owner?.jobIndex ?? "",
    bytes: status.bytes, inodes: status.inodes,
    published: Date.parse(status.publishedAt), retained: Date.parse(status.retainedAt), expires: Date.parse(status.expiresAt),
    outcome: status.outcome ?? "", hold: held(status.hold),
    sooner: status.mayGoEarlier === true, foreign: metadata.labels?.["katbox.io/foreign"] === "true",
  };
  if (spec.poolName) volume.pool = true;
  if (status.gone) volume.gone = goneOf(status.gone, spec);
  const { namespace, name, pod, node } = volume;
  const decided = volume.gone ? whyGone(volume.gone) : volume.hold?.kind ?? "";
  volume.text = `${namespace}\n${pod || name}\n${owner}\n${volume.volume}\n${node}\n${volume.outcome}\n${decided}`.toLowerCase();
  return volume;
}

// groupsOf returns the owners of volumes, in the order of their first ones. A group has its members, and in
// the names of a volume's facts what they come to together: the sum of their sizes, the last time.
export function groupsOf(volumes) {
  const groups = new Map();
  for (const v of volumes) {
    const key = `${v.namespace}/${v.owner || v.pod || v.name}`;
    let group = groups.get(key);
    if (!group) {
      group = { key, namespace: v.namespace, owner: v.owner, pod: v.owner, node: v.node, outcome: v.outcome, outcomes: new Map(), nodes: new Set(), members: [], retained: NaN, left: NaN, gone: NaN };
      if (!v.owner) group.owner = group.pod = visible(v.pod || v.name);
      groups.set(key, group);
    }
    group.members.push(v);
    group.nodes.add(v.node);
    group.outcomes.set(v.outcome, (group.outcomes.get(v.outcome) ?? 0) + 1);
    // The worst of them counts.
    if (v.outcome === "Failed") group.outcome = v.outcome;
    if (v.bytes !== undefined) group.bytes = group.size = (group.bytes ?? 0) + v.bytes;
    group.retained = extreme(Math.max, group.retained, v.retained);
    group.left = extreme(Math.min, group.left, v.expires);
    group.gone = extreme(Math.max, group.gone, v.gone?.at ?? NaN);
  }
  return [...groups.values()];
}

function extreme(of, a, b) {
  return Number.isNaN(a) ? b : Number.isNaN(b) ? a : of(a, b);
}

// held keeps of a person's decision about a volume what the page shows; null without one.
function held(hold) {
  return hold ? { kind: hold.kind, until: Date.parse(hold.until), by: hold.by ?? "", why: hold.why ?? "" } : null;
}

// goneOf keeps what the page shows of when and why a volume went.
function goneOf({ at, reason, promised, kept, early, by, why }, { podUID }) {
  return { at: Date.parse(at), reason, promised: promised ?? "", kept: kept ?? "", early: early === true, by: by ?? "", why: why ?? "", podUID: podUID ?? "" };
}

// away says why a node is missing.
const away = { __proto__: null, NotConnected: "not connected", NoAnswer: "no answer in time", Failed: "answered with an error" };

// missingNodes says which nodes a list lacks: a title and a text; null if it lacks none.
export function missingNodes(fleet, clock) {
  const named = fleet?.missing ?? [];
  const all = named.length + (fleet?.missingMore ?? 0);
  if (all === 0) return null;
  const names = named.map(({ node, since, reason }) => {
    const why = away[reason] ?? reason;
    return `${node} (${since ? `${why} since ${clock(Date.parse(since))}` : why})`;
  });
  if (fleet.missingMore > 0) names.push(`${count(fleet.missingMore)} more`);
  const who = named.map(({ node }) => node).filter((node) => notNodes.includes(node));
  const nodes = all - who.length;
  if (nodes > 0) who.unshift(`${count(nodes)} of ${count(fleet.nodes)} nodes`);
  const title = `${who.join(" and ")} did not answer; ${all === 1 ? "its" : "their"} volumes are not in this list`;
  return { title, text: `${names.join(", ")}. Nothing is lost by that: the volumes are shown again when the nodes are back.` };
}

// otherWarnings are the warnings of the server that the notice about nodes does not say.
export function otherWarnings(warnings, fleet) {
  const said = (fleet?.missing?.length ?? 0) > 0;
  return warnings.map((text) => text.replace(/^katbox: /, "")).filter((text) => !(said && /did not answer/.test(text)));
}
