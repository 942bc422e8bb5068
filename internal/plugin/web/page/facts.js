// What is said of a volume, in lists and on its own.

import { el, icon } from "./dom.js";
import { left, moment, seconds, share } from "./format.js";
import { cut, visible } from "./names.js";

const outcomes = { __proto__: null, Failed: "failed", Succeeded: "succeeded", Stopped: "stopped" };

// outcomeIcon is the picture of an outcome, in its color.
export function outcomeIcon(outcome) {
  const kind = outcomes[outcome] ?? "unknown";
  return el("span", { class: `mark ${kind}` }, icon(kind));
}

// outcomeOf shows how a pod ended: a picture, and the word.
export function outcomeOf({ outcome }) {
  return el("span", { class: "outcome-of", title: visible(outcome) || "It is not known how the pod ended" },
    outcomeIcon(outcome), el("span", { class: "word" }, visible(outcome) || "Unknown"));
}

// ownerOf shows the owner of a pod.
export function ownerOf({ owner, guessed }) {
  return owner ? el("span", { class: guessed && "guessed", title: guessed ? `${owner}: guessed from the pod’s name` : owner }, cut(owner)) : "–";
}

// nodeOf shows the node of a volume.
export function nodeOf({ node }) {
  return el("span", { title: visible(node) }, cut(node));
}

const holds = { __proto__: null, Pinned: "pin", Released: "release" };

// timeLeft shows how long a volume is still kept: a bar, and a text, with what a person has decided about that.
export function timeLeft({ retained, expires, sooner, hold }, now) {
  if (Number.isNaN(expires)) return "–";
  const part = share(retained, expires, now);
  const fill = el("span", { class: "fill" });
  fill.style.width = `${(100 * part).toFixed(1)}%`;
  const pinned = hold?.kind === "Pinned";
  const how = pinned ? "pinned" : part < 0.1 || expires - now < 600_000 ? "last" : sooner ? "sooner" : "";
  const shape = hold ? holds[hold.kind] : sooner && "warning";
  const said = hold ? `${visible(hold.kind)} ${holdInFull(hold)}` : `${sooner ? "Until, or earlier: " : "Until "}${moment(expires)}`;
  return el("span", { class: `remaining ${how}`, title: said },
    el("span", { class: "track", "aria-hidden": "true" }, fill),
    el("span", { class: "text" }, shape && icon(shape), left(expires, now, sooner), hold && `, ${visible(hold.kind.toLowerCase())}`));
}

// holdInFull says until when a person's decision about a volume holds, whose it is, and why.
export function holdInFull({ until, by, why }) {
  return [`until ${moment(until).slice(0, 16)}`, by && `by ${visible(by)}`].filter(Boolean).join(" ") + (why ? `: ${visible(why)}` : "");
}

// The reasons that need more than their word.
const reasons = {
  __proto__: null,
  bytes: "the disk ran short of space", inodes: "the disk ran short of inodes", namespace: "it retained too much",
  floor: "the disk was nearly full", interrupted: "its deletion was cut short, and finished later",
  owner: "the first and the last pods of its owner stay",
};

// whyGone says why a volume is gone, who wanted that, and the reason that was given. The words are those of
// kubectl katbox list --gone.
export function whyGone({ reason, by, why }) {
  return visible(`${reason}${reasons[reason] ? `: ${reasons[reason]}` : ""}${by ? ` by ${by}` : ""}${why ? `: ${why}` : ""}`);
}

// keptOf says how long a volume was kept, of how long it was to be. One that was kept longer, as while its node
// was away, was not kept "of" that.
export function keptOf({ kept, promised }) {
  if (seconds(kept) > seconds(promised)) return `${kept}, promised ${promised}`;
  return `${visible(kept) || "–"} of ${visible(promised) || "–"}`;
}
