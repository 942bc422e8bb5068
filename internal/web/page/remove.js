// The question before a volume is deleted.

import { remove } from "./api.js";
import { button, el } from "./dom.js";
import { size } from "./format.js";
import { visible } from "./names.js";
import { trouble } from "./notice.js";

// askToRemove asks whether a volume is to be deleted, and deletes it. done is called when it is gone, with
// a text that says so.
export function askToRemove(volume, done) {
  const pod = visible(volume.pod || volume.name);
  const notices = el("div", { class: "notices" });
  const cancel = button("Keep it", () => dialog.close(), { autofocus: true });
  const confirm = button("Delete", async () => {
    confirm.disabled = true;
    confirm.lastChild.textContent = "Deleting…";
    notices.replaceChildren();
    try {
      await remove(volume);
      dialog.close();
      done(`The volume ${visible(volume.volume)} of pod ${pod} is deleted`);
    } catch (problem) {
      notices.replaceChildren(trouble(problem, "delete", volume.namespace));
      confirm.disabled = false;
      confirm.lastChild.textContent = "Delete";
    }
  }, { class: "danger", id: "confirm" });
  const dialog = el("dialog", { "aria-labelledby": "remove-title", on: { close: () => dialog.remove() } },
    el("h2", { id: "remove-title" }, `Delete the files of pod ${pod}?`),
    el("p", {}, "All files of its volume ", el("strong", {}, visible(volume.volume) || volume.name), volume.bytes === undefined ? "" : ` (${size(volume.bytes)})`,
      " are deleted from the node ", el("strong", {}, visible(volume.node)), ". They cannot be brought back."),
    el("p", { class: "hint" }, "Without this they are deleted when their time is over."),
    notices, el("div", { class: "tools" }, cancel, confirm));
  document.body.append(dialog);
  dialog.showModal();
}
