// The list of the volumes of a namespace, or of all, that are gone.

import { el, icon } from "./dom.js";
import { ago, moment, size } from "./format.js";
import { showGone } from "./goneabout.js";
import { ListView } from "./listview.js";
import { visible } from "./names.js";
import { everywhere } from "./route.js";
import { ownerOf, podLines } from "./whose.js";
import { keptOf, whyGone } from "./whygone.js";

const columns = [
  { key: "pod", title: "Pod", sort: true },
  { key: "owner", title: "Owner", sort: true },
  { key: "outcome", title: "Outcome", sort: true },
  { key: "size", title: "Size", sort: true },
  { key: "gone", title: "Gone", sort: true },
  { key: "kept", title: "Kept", sort: true },
  { key: "why", title: "Why", sort: true },
  { key: "node", title: "Node", sort: true },
];
const values = {
  __proto__: null,
  namespace: (v) => v.namespace, pod: (v) => v.pod || v.name, owner: (v) => v.owner, outcome: (v) => v.outcome, size: (v) => v.bytes,
  gone: (v) => v.gone.at, kept: (v) => v.gone.at - v.retained, why: (v) => whyGone(v.gone), node: (v) => v.node,
};

export class GoneView extends ListView {
  constructor(app, route) {
    super(app, route, {
      title: route.namespace === everywhere ? "Volumes of all namespaces that are gone" : `Volumes of ${visible(route.namespace)} that are gone`,
      kind: "gone", gone: true, columns, values, largestFirst: ["size", "gone", "kept"], standard: "-gone", first: "The last one first",
      placeholder: "Search pod, owner, reason, node",
    });
  }

  cells(volume, now) {
    const { namespace, name, gone } = volume;
    const pod = el("button", { type: "button", class: "plain", "aria-haspopup": "dialog", on: { click: () => this.#open(volume) } }, visible(volume.pod || name));
    const size_ = size(volume.bytes);
    const when = ago(gone.at, now);
    const why = whyGone(gone);
    const kept = keptOf(gone);
    return [
      podLines(pod, [this.all && visible(namespace), volume.owner, visible(volume.outcome), when, why]),
      ownerOf(volume),
      visible(volume.outcome) || "–",
      size_,
      el("span", { title: moment(gone.at) }, when),
      el("span", { class: gone.early && "early", title: kept }, gone.early && icon("warning"), kept),
      el("span", { title: why }, why),
      el("span", { title: visible(volume.node) }, visible(volume.node)),
    ];
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
