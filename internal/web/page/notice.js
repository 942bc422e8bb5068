// What the page tells people beside what they came for.

import { button, el, icon } from "./dom.js";
import { visible } from "./names.js";
import { explain } from "./problem.js";

// said is how many milliseconds a text stays for screen readers to say it.
const said = 5000;

// announce makes screen readers say a text, after those that they have not said yet.
export function announce(text) {
  const line = el("p", {}, text);
  document.getElementById("live").append(line);
  setTimeout(() => line.remove(), said);
}

// notice makes a box with a title, and texts below it. kind is "info", "warning" or "error".
export function notice(kind, title, texts = [], actions = []) {
  return el("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" },
    icon("warning"),
    el("div", {}, el("p", { class: "title" }, visible(title)), texts.filter(Boolean).map((text) => el("p", {}, visible(text.replace(/\s+/g, " ")))),
      actions.length > 0 && el("p", { class: "actions" }, actions)));
}

// trouble says what a problem is. again repeats what failed, if that may help.
export function trouble(problem, action, namespace, again) {
  const { title, text, advice } = explain(problem, action, namespace);
  const hopeless = [400, 401, 403, 404].includes(problem.status);
  return notice("error", title, [text, advice], again && !hopeless ? [button("Try again", again)] : []);
}
