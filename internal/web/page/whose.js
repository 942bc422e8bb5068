// Whose a volume is or was, in a row of a list.

import { el } from "./dom.js";

// podLines returns what is in the first column: the pod, which can be pressed, and in a narrow window below
// it what else is known.
export function podLines(pod, more) {
  pod.title = pod.textContent;
  return [pod, el("span", { class: "more" }, more.filter((text) => text && text !== "–").join(" · "))];
}

// ownerOf shows the owner of a pod.
export function ownerOf({ owner, guessed }) {
  return owner ? el("span", { class: guessed && "guessed", title: guessed ? `${owner}: guessed from the pod’s name` : owner }, owner) : "–";
}
