// Why a volume is gone, and how long it was kept, in words. They are those of kubectl katbox list --gone.

import { visible } from "./names.js";

// The reasons that need more than their word.
const reasons = {
  __proto__: null,
  bytes: "the disk ran short of space", inodes: "the disk ran short of inodes", namespace: "it retained too much",
  floor: "the disk was nearly full", interrupted: "its deletion was cut short, and finished later",
};

// whyGone says why a volume is gone, who wanted that, and the reason that was given.
export function whyGone({ reason, by, why }) {
  return visible(`${reason}${reasons[reason] ? `: ${reasons[reason]}` : ""}${by ? ` by ${by}` : ""}${why ? `: ${why}` : ""}`);
}

// keptOf says how long a volume was kept, of how long it was to be.
export function keptOf({ kept, promised }) {
  return `${visible(kept) || "–"} of ${visible(promised) || "–"}`;
}
