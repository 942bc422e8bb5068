// The volumes of a list, as far as they are loaded.

import { list } from "./api.js";
import { visible } from "./names.js";
import { whyGone } from "./whygone.js";

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
  if (status.gone) volume.gone = goneOf(status.gone, spec);
  const { namespace, name, pod, node } = volume;
  const decided = volume.gone ? whyGone(volume.gone) : volume.hold?.kind ?? "";
  volume.text = `${namespace}\n${pod || name}\n${owner}\n${volume.volume}\n${node}\n${volume.outcome}\n${decided}`.toLowerCase();
  return volume;
}

// held keeps of a person's decision about a volume what the page shows; null without one.
function held(hold) {
  return hold ? { kind: hold.kind, until: Date.parse(hold.until), by: hold.by ?? "", why: hold.why ?? "" } : null;
}

// goneOf keeps what the page shows of when and why a volume went.
function goneOf({ at, reason, promised, kept, early, by, why }, { podUID }) {
  return { at: Date.parse(at), reason, promised: promised ?? "", kept: kept ?? "", early: early === true, by: by ?? "", why: why ?? "", podUID: podUID ?? "" };
}
