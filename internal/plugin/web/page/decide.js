// What a person decides about a volume: that it is kept longer, that it may go, or that it goes now. Each is
// asked for in a dialog first.

import { pin, release, remove, unpin } from "./api.js";
import { button, el } from "./dom.js";
import { moment, size } from "./format.js";
import { visible } from "./names.js";
import { trouble } from "./problem.js";

const hour = 3_600_000;
// lengths are how long a volume can be pinned here; the plugin takes any time.
const lengths = [["12 hours", 12], ["1 day", 24], ["2 days", 48], ["4 days", 96], ["1 week", 168], ["2 weeks", 336], ["30 days", 720]];
const usual = 48;

// askFirst shows a dialog with a title and contents. act does what it asks for when the button is pressed that says
// how; action is the right that it takes. done is called with the text that act returns.
function askFirst(volume, { title, contents, stay = "Cancel", confirm, doing, danger = false, action, act, done }) {
  const notices = el("div", { class: "notices" });
  const sure = button(confirm, null, { asks: true, type: "submit", class: danger ? "danger" : "primary", id: "confirm" });
  const submit = async (event) => {
    event.preventDefault();
    sure.disabled = true;
    sure.lastChild.textContent = doing;
    notices.replaceChildren();
    try {
      const said = await act();
      dialog.close();
      done(said);
    } catch (problem) {
      notices.replaceChildren(trouble(problem, action, volume.namespace));
      sure.disabled = problem.status === 0;
      sure.lastChild.textContent = confirm;
    }
  };
  const dialog = el("dialog", { "aria-labelledby": "decide-title", on: { close: () => dialog.remove() } },
    el("form", { on: { submit } }, el("h2", { id: "decide-title" }, title), contents, notices,
      el("div", { class: "tools" }, button(stay, () => dialog.close(), { autofocus: danger }), sure)));
  document.body.append(dialog);
  dialog.showModal();
}

const podOf = (volume) => visible(volume.pod || volume.name);

function reasonField(props) {
  return el("input", { type: "text", id: "reason", maxlength: 300, autocomplete: "off", ...props });
}

// askToRemove asks whether a volume is to be deleted, and deletes it.
export function askToRemove(volume, done) {
  askFirst(volume, {
    title: `Delete the files of pod ${podOf(volume)}?`,
    contents: [
      el("p", {}, "All files of its volume ", el("strong", {}, visible(volume.volume) || volume.name), volume.bytes === undefined ? "" : ` (${size(volume.bytes)})`,
        " are deleted from the node ", el("strong", {}, visible(volume.node)), ". They cannot be brought back."),
      el("p", { class: "hint" }, "Without this they are deleted when their time is over."),
    ],
    stay: "Keep it", confirm: "Delete", doing: "Deleting…", danger: true, action: "delete", done,
    async act() {
      await remove(volume);
      return `The volume ${visible(volume.volume)} of pod ${podOf(volume)} is deleted`;
    },
  });
}

// askToPin asks how long a volume is to be kept, and why, and pins it.
export function askToPin(volume, done) {
  const length = el("select", { id: "length", autofocus: true }, lengths.map(([text, hours]) => el("option", { value: hours, selected: hours === usual }, text)));
  const reason = reasonField({ required: true });
  const until = el("p", { class: "hint" });
  const when = () => Date.now() + Number(length.value) * hour;
  const say = () => {
    until.textContent = `It is kept until ${moment(when()).slice(0, 16)} at least, also while the disk fills up. After that it goes as it would have gone.`;
  };
  length.addEventListener("change", say);
  say();
  askFirst(volume, {
    title: `Keep the files of pod ${podOf(volume)} longer`,
    contents: [
      el("p", { class: "field" }, el("label", { for: "length" }, "From now on for"), length),
      el("p", { class: "field" }, el("label", { for: "reason" }, "Why"), reason),
      el("p", { class: "hint" }, "Others who find it still there see your name and the reason."), until,
    ],
    confirm: "Pin", doing: "Pinning…", action: "patch", done,
    async act() {
      await pin(volume, when(), reason.value.trim());
      return `The volume of pod ${podOf(volume)} is pinned`;
    },
  });
}

// askToRelease asks whether a volume is not needed any more, and releases it.
export function askToRelease(volume, done) {
  const reason = reasonField({ autofocus: true });
  askFirst(volume, {
    title: `Let the files of pod ${podOf(volume)} go?`,
    contents: [
      el("p", {}, "The volume goes soon: after the grace of its node, and before others when room is needed. Until then it can be taken back by those who may pin volumes."),
      el("p", { class: "field" }, el("label", { for: "reason" }, "Why (optional)"), reason),
    ],
    confirm: "Release", doing: "Releasing…", action: "delete", done,
    async act() {
      await release(volume, reason.value.trim());
      return `The volume of pod ${podOf(volume)} is released`;
    },
  });
}

// takeBack ends a pin or a release.
export async function takeBack(volume) {
  await unpin(volume);
  return volume.hold?.kind === "Released" ? "The release is taken back" : "The pin is taken back";
}
