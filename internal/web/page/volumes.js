// The list of retained volumes of a namespace, or of all.

import { el } from "./dom.js";
import { ago, moment, size } from "./format.js";
import { ListView } from "./listview.js";
import { visible } from "./names.js";
import { everywhere, format } from "./route.js";
import { timeLeft } from "./timeleft.js";
import { ownerOf, podLines } from "./whose.js";

const columns = [
  { key: "pod", title: "Pod", sort: true },
  { key: "owner", title: "Owner", sort: true },
  { key: "volume", title: "Volume", sort: true },
  { key: "outcome", title: "Outcome", sort: true },
  { key: "size", title: "Size", sort: true },
  { key: "retained", title: "Retained", sort: true },
  { key: "left", title: "Time left", sort: true },
  { key: "node", title: "Node", sort: true },
];
const values = {
  __proto__: null,
  namespace: (v) => v.namespace, pod: (v) => v.pod || v.name, owner: (v) => v.owner, volume: (v) => v.volume, outcome: (v) => v.outcome,
  size: (v) => v.bytes,
  retained: (v) => v.retained, left: (v) => v.expires, node: (v) => v.node,
};

export class VolumesView extends ListView {
  constructor(app, route) {
    super(app, route, {
      title: route.namespace === everywhere ? "Retained volumes of all namespaces" : `Retained volumes of ${visible(route.namespace)}`,
      kind: "volumes", gone: false, columns, values, largestFirst: ["size", "retained"], standard: "-retained", first: "The newest first",
      placeholder: "Search pod, owner, volume, outcome, node",
    });
  }

  cells(volume, now) {
    const { namespace, name } = volume;
    const link = el("a", { href: format({ namespace, name }) }, visible(volume.pod || name));
    const size_ = size(volume.bytes);
    return [
      podLines(link, [this.all && visible(namespace), volume.owner, visible(volume.outcome), size_, ago(volume.retained, now)]),
      ownerOf(volume),
      el("span", {}, visible(volume.volume) || "–"),
      visible(volume.outcome) || "–",
      size_,
      el("span", { title: moment(volume.retained) }, ago(volume.retained, now)),
      timeLeft(volume, now),
      el("span", { title: visible(volume.node) }, visible(volume.node)),
    ];
  }

  note() {
    return this.shown.some((v) => v.sooner) ? ". “Or less”: the node’s disk fills up, and the volume may go earlier." : "";
  }

  emptyText() {
    return `There are no retained volumes ${this.where}. A pod’s Katbox volumes are shown here for a while after the pod has ended.`;
  }
}
