// The lists of a namespace, or of all: the retained volumes, and those that are gone.

import { button, el, icon } from "./dom.js";
import { keptOf, nodeOf, outcomeOf, ownerOf, timeLeft, whyGone } from "./facts.js";
import { ago, count, left, moment, size } from "./format.js";
import { ListView } from "./listview.js";
import { cut, visible } from "./names.js";
import { everywhere, format } from "./route.js";

const common = {
  __proto__: null,
  outcome: (v) => v.outcome, namespace: (v) => v.namespace, pod: (v) => v.pod || v.name, owner: (v) => v.owner, size: (v) => v.bytes, node: (v) => v.node,
};

// ownerToo is the owner, unless the pod's name says it: nightly-x7k2p is one of job/nightly.
function ownerToo({ owner, pod }) {
  return pod.startsWith(owner.slice(owner.indexOf("/") + 1)) ? "" : owner;
}

// podLines is the pod, which can be pressed, and in a narrow window below it what else is known.
function podLines(pod, volume, more) {
  pod.title = visible(volume.pod || volume.name);
  const outcome = el("span", { "aria-hidden": "true" }, visible(volume.outcome) || "Unknown");
  return [pod, el("span", { class: "more" }, outcome, more.filter((text) => text && text !== "–").map((text) => ` · ${text}`))];
}

export class VolumesView extends ListView {
  constructor(app, route) {
    super(app, route, {
      title: route.namespace === everywhere ? "Retained volumes of all namespaces" : `Retained volumes of ${visible(route.namespace)}`,
      kind: "volumes", gone: false, largestFirst: ["size", "retained"], standard: "-retained", first: "The newest first",
      placeholder: "Search pod, owner, outcome, node",
      columns: [["outcome", "Outcome"], ["pod", "Pod"], ["owner", "Owner"], ["volume", "Volume"], ["size", "Size"], ["retained", "Retained"], ["left", "Time left"], ["node", "Node"]],
      values: { ...common, volume: (v) => v.volume, retained: (v) => v.retained, left: (v) => v.expires },
    });
  }

  cells(volume, now) {
    const { namespace, name } = volume;
    const link = el("a", { href: format({ namespace, name }) }, cut(volume.pod || name));
    const size_ = size(volume.bytes);
    return [
      outcomeOf(volume),
      podLines(link, volume, [this.all && visible(namespace), ownerToo(volume), size_, ago(volume.retained, now)]),
      ownerOf(volume),
      el("span", {}, visible(volume.volume) || "–"),
      size_,
      el("span", { title: moment(volume.retained) }, ago(volume.retained, now)),
      timeLeft(volume, now),
      nodeOf(volume),
    ];
  }

  groupCells({ size: bytes, retained, left: expires, nodes }, now) {
    const first = Number.isNaN(expires) ? "" : `first in ${left(expires, now)}`;
    return {
      size: size(bytes), retained: el("span", { title: moment(retained) }, ago(retained, now)), left: first.replace("in expires", "expires"),
      node: nodes.size === 1 ? nodeOf({ node: [...nodes][0] }) : `${count(nodes.size)} nodes`, more: [size(bytes), ago(retained, now)],
    };
  }

  note() {
    return this.shown.some((v) => v.sooner) ? ". “Or less”: the node’s disk fills up, and the volume may go earlier." : "";
  }

  emptyText() {
    return `There are no retained volumes ${this.where}. A pod’s Katbox volumes are shown here for a while after the pod has ended.`;
  }
}

export class GoneView extends ListView {
  constructor(app, route) {
    super(app, route, {
      title: route.namespace === everywhere ? "Volumes of all namespaces that are gone" : `Volumes of ${visible(route.namespace)} that are gone`,
      kind: "gone", gone: true, largestFirst: ["size", "gone", "kept"], standard: "-gone", first: "The last one first",
      placeholder: "Search pod, owner, reason, node",
      columns: [["outcome", "Outcome"], ["pod", "Pod"], ["owner", "Owner"], ["size", "Size"], ["gone", "Gone"], ["kept", "Kept"], ["why", "Why"], ["node", "Node"]],
      values: { ...common, gone: (v) => v.gone.at, kept: (v) => v.gone.at - v.retained, why: (v) => whyGone(v.gone) },
    });
  }

  cells(volume, now) {
    const { namespace, name, gone } = volume;
    const pod = el("button", { type: "button", class: "plain", "aria-haspopup": "dialog", on: { click: () => this.#open(volume) } }, cut(volume.pod || name));
    const when = ago(gone.at, now);
    const why = whyGone(gone);
    const kept = keptOf(gone);
    return [
      outcomeOf(volume),
      podLines(pod, volume, [this.all && visible(namespace), ownerToo(volume), when, why]),
      ownerOf(volume),
      size(volume.bytes),
      el("span", { title: moment(gone.at) }, when),
      el("span", { class: gone.early && "early", title: kept }, gone.early && icon("warning"), kept),
      el("span", { title: why }, why),
      nodeOf(volume),
    ];
  }

  groupCells({ size: bytes, gone: at, nodes }, now) {
    return {
      size: size(bytes), gone: el("span", { title: moment(at) }, ago(at, now)), more: [ago(at, now)],
      node: nodes.size === 1 ? nodeOf({ node: [...nodes][0] }) : `${count(nodes.size)} nodes`,
    };
  }

  // A row that was drawn anew meanwhile gets the focus back.
  #open(volume) {
    this.dialog = showGone(volume, () => this.grid.focus(this.grid.active));
  }

  note() {
    const early = this.shown.filter((v) => v.gone.early).length;
    return early === 0 ? "" : `. ${early === 1 ? "One of them" : `${early} of them`} went before the end of what was promised.`;
  }

  end() {
    this.dialog?.close();
    super.end();
  }

  emptyText() {
    return `The nodes remember no volume that is gone ${this.where}. They keep the last ones, with when and why each of them went.`;
  }
}

// showGone shows all that is remembered of a volume that is gone in a dialog, which it returns. done is called when
// that is closed.
function showGone(volume, done) {
  const { gone } = volume;
  const rows = [
    ["Why", whyGone(gone)],
    ["Gone", moment(gone.at)],
    ["Retained", moment(volume.retained)],
    ["Kept", keptOf(gone).replace(/ of (\S+)$/, " of $1 promised")],
    gone.early && ["Note", "It went before the end of what was promised, and no person wanted that."],
    ["Namespace", visible(volume.namespace)],
    ["Volume", visible(volume.volume) || "–"],
    ["Owner", volume.owner ? `${volume.owner}${volume.guessed ? " (guessed)" : ""}` : "–"],
    ["Outcome", outcomeOf(volume)],
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
