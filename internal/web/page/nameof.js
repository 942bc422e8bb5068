// Names of files on the screen.

import { el } from "./dom.js";
import { namePieces } from "./names.js";

// nameOf shows a name that a pod chose: apart from the direction of the text around it, with the
// characters that hide something made visible.
export function nameOf(name) {
  return el("bdi", { class: "name" }, namePieces(name).map(({ text, odd }) => (odd ? el("span", { class: "odd" }, text) : text)));
}
