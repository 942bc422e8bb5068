// All that is remembered of a volume that is gone.

import { button, el } from "./dom.js";
import { count, moment, size } from "./format.js";
import { visible } from "./names.js";
import { keptOf, whyGone } from "./whygone.js";

// showGone shows it in a dialog, which it returns. done is called when that is closed.
export function showGone(volume, done) {
  const { gone } = volume;
  const rows = [
    ["Why", whyGone(gone)],
    ["Gone", moment(gone.at)],
    ["Retained", moment(volume.retained)],
    ["Kept", `${keptOf(gone)} promised`],
    gone.early && ["Note", "It went before the end of what was promised, and no person wanted that."],
    ["Namespace", visible(volume.namespace)],
    ["Volume", visible(volume.volume) || "–"],
    ["Owner", volume.owner ? `${volume.owner}${volume.guessed ? " (guessed)" : ""}` : "–"],
    ["Outcome", visible(volume.outcome) || "–"],
    ["Size", volume.inodes === undefined ? size(volume.bytes) : `${size(volume.bytes)} in ${count(volume.inodes)} inodes`],
    ["Node", visible(volume.node)],
    ["Pod UID", visible(gone.podUID) || "–"],
    volume.foreign && ["Note", "It is of an earlier namespace of this name."],
  ];
  const dialog = el("dialog", { "aria-labelledby": "gone-title", on: { close: () => (dialog.remove(), done()) } },
    el("h2", { id: "gone-title" }, `What became of the volume of pod ${visible(volume.pod || volume.name)}`),
    el("dl", { class: "facts" }, rows.filter(Boolean).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("p", { class: "hint" }, "Its files are deleted. They cannot be brought back."),
    el("div", { class: "tools" }, button("Close", () => dialog.close(), { autofocus: true })));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
