// How long a volume is still kept.

import { el, icon } from "./dom.js";
import { left, moment, share } from "./format.js";
import { visible } from "./names.js";

// timeLeft shows the time that is left of a volume: a bar, and a text.
export function timeLeft({ retained, expires, sooner }, now) {
  if (Number.isNaN(expires)) return "–";
  const part = share(retained, expires, now);
  const fill = el("span", { class: "fill" });
  fill.style.width = `${(100 * part).toFixed(1)}%`;
  const how = part < 0.1 || expires - now < 600_000 ? "last" : sooner ? "sooner" : "";
  return el("span", { class: `remaining ${how}`, title: `${sooner ? "Until, or earlier: " : "Until "}${moment(expires)}` },
    el("span", { class: "track", "aria-hidden": "true" }, fill), el("span", { class: "text" }, sooner && icon("warning"), left(expires, now, sooner)));
}

// holdInFull says until when a person's decision about a volume holds, whose it is, and why.
export function holdInFull({ until, by, why }) {
  return [`until ${moment(until).slice(0, 16)}`, by && `by ${visible(by)}`].filter(Boolean).join(" ") + (why ? `: ${visible(why)}` : "");
}
