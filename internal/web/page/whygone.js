// Why a volume is gone, and how long it was kept, in words. They are those of kubectl katbox list --gone.

import { visible } from "./names.js";

const reasons = {
  __proto__: null,
  bytes: "early: no bytes left", inodes: "early: no inodes left", namespace: "early: its namespace retained too much",
  floor: "early: the disk was nearly full",
};

// whyGone says why a volume is gone, who wanted that, and the reason that was given.
export function whyGone({ reason, by, why }) {
  return visible(`${reasons[reason] ?? reason}${by ? ` by ${by}` : ""}${why ? `: ${why}` : ""}`);
}

// keptOf says how long a volume was kept, of how long it was to be.
export function keptOf({ kept, promised }) {
  return `${visible(kept) || "–"} of ${visible(promised) || "–"}`;
}
