// The list of retained volumes of a namespace, or of all.

import { button, el } from "./dom.js";
import { ago, count, counted, moment, size } from "./format.js";
import { Grid } from "./grid.js";
import { missingNodes, otherWarnings } from "./missing.js";
import { visible } from "./names.js";
import { announce, notice, trouble } from "./notice.js";
import { everywhere, format } from "./route.js";
import { moved, typed } from "./searchkeys.js";
import { matching, ordered, turned } from "./select.js";
import { timeLeft } from "./timeleft.js";
import { VolumeStore } from "./volumestore.js";

// freshFor is how long a list is shown again without asking, when a reader comes back to it.
const freshFor = 5 * 60_000;
// tick is how often ages are written anew.
const tick = 30_000;

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
const largestFirst = ["size", "retained"];
// standard is the order in which the server sends: the newest first.
const standard = "-retained";
const values = {
  __proto__: null,
  namespace: (v) => v.namespace, pod: (v) => v.pod || v.name, owner: (v) => v.owner, volume: (v) => v.volume, outcome: (v) => v.outcome,
  size: (v) => v.bytes,
  retained: (v) => v.retained, left: (v) => v.expires, node: (v) => v.node,
};

export class VolumesView {
  #leaving = new AbortController();

  constructor(app, route) {
    this.app = app;
    this.namespace = route.namespace;
    this.all = route.namespace === everywhere;
    this.title = this.all ? "Retained volumes of all namespaces" : `Retained volumes of ${visible(this.namespace)}`;
    this.heading = el("h1", { tabindex: -1 }, this.title);
    this.search = el("input", {
      type: "search", id: "search", class: "search", placeholder: "Search pod, owner, volume, outcome, node", "aria-label": "Search the loaded volumes",
      autocomplete: "off", spellcheck: "false", on: { input: () => this.#searched(), keydown: (event) => moved(event, this.#list) },
    });
    this.search.value = route.q;
    this.order = route.sort;
    this.status = el("p", { class: "status" });
    this.notices = el("div", { class: "notices" });
    this.empty = el("p", { class: "empty", hidden: true });
    this.grid = new Grid({
      label: this.title, kind: this.all ? "volumes all" : "volumes",
      columns: this.all ? [{ key: "namespace", title: "Namespace", sort: true }, ...columns] : columns,
      cells: (volume) => this.#cells(volume),
      sorted: (key) => this.#sorted(turned(this.order || standard, key, largestFirst.includes(key))),
      typed: (key) => typed(key, this.#list), above: () => this.search.focus(),
    });
    this.root = el("div", { class: "view" },
      el("div", { class: "bar" }, this.heading,
        el("div", { class: "tools" }, this.search, button("Refresh", () => this.load(), { icon: "refresh", class: "quiet", id: "refresh" }))),
      this.notices, this.status, this.grid.root, this.empty);
  }

  begin() {
    this.timer = setInterval(() => this.grid.rows.redrawAll(), tick);
    const kept = this.app.store;
    if (kept?.namespace === this.namespace && kept.complete && Date.now() - kept.loadedAt < freshFor) {
      this.store = kept;
      this.#draw();
      this.grid.rows.reveal(Math.floor(kept.place ?? 0), "start");
      this.grid.focus(kept.active ?? 0);
      return;
    }
    this.load();
  }

  // load loads the list. What was shown stays until there is as much again, so that no row jumps away.
  async load() {
    this.#leaving.abort();
    this.#leaving = new AbortController();
    const { signal } = this.#leaving;
    const store = new VolumeStore(this.namespace);
    this.loading = true;
    this.problem = null;
    this.#say();
    try {
      await store.load(() => {
        const first = this.store !== store;
        if (first && this.store && !store.complete && store.volumes.length < this.store.volumes.length) return;
        this.store = this.app.store = store;
        this.#draw();
        if (first) this.app.reached(this.namespace);
      }, signal);
      this.loading = false;
      announce(`${counted(this.shown.length, "volume")} shown`);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.loading = false;
      this.problem = problem;
    }
    this.#say();
  }

  #draw() {
    this.shown = ordered(matching(this.store.volumes, this.search.value, (v) => v.text), this.order, values);
    this.grid.sortedBy(this.order || standard);
    this.grid.show(this.shown);
    this.#say();
  }

  #cells(volume) {
    const now = Date.now();
    const { namespace, name } = volume;
    const link = el("a", { href: format({ namespace, name }) }, visible(volume.pod || name));
    const size_ = size(volume.bytes);
    const cells = [
      [link, el("span", { class: "more" }, [this.all && visible(namespace), volume.owner, visible(volume.outcome), size_, ago(volume.retained, now)].filter((text) => text && text !== "–").join(" · "))],
      volume.owner ? el("span", { class: volume.guessed && "guessed", title: volume.guessed ? `${volume.owner}: guessed from the pod’s name` : volume.owner }, volume.owner) : "–",
      el("span", {}, visible(volume.volume) || "–"),
      visible(volume.outcome) || "–",
      size_,
      el("span", { title: moment(volume.retained) }, ago(volume.retained, now)),
      timeLeft(volume, now),
      el("span", { title: visible(volume.node) }, visible(volume.node)),
    ];
    link.title = link.textContent;
    return this.all ? [el("span", { title: namespace }, visible(namespace)), ...cells] : cells;
  }

  // say writes how much is loaded, and what is missing.
  #say() {
    const { store } = this;
    const notices = [];
    if (this.problem) notices.push(trouble(this.problem, "list", this.namespace, () => this.load()));
    const lacks = store && missingNodes(store.fleet, (time) => moment(time).slice(11, 16));
    if (lacks) notices.push(notice("warning", lacks.title, [lacks.text]));
    for (const text of store ? otherWarnings(store.warnings, store.fleet) : []) notices.push(notice("warning", text));
    const said = notices.map((node) => node.textContent).join();
    if (said !== this.said) this.notices.replaceChildren(...notices);
    this.said = said;
    this.status.textContent = store ? this.#statusText() : this.loading ? "Loading…" : "";
    this.root.classList.toggle("loading", Boolean(this.loading));
    const none = store && this.shown.length === 0 && !(this.loading && store.volumes.length === 0);
    this.grid.root.hidden = !store || none;
    this.empty.hidden = !none;
    if (none) this.empty.textContent = this.#emptyText();
  }

  #statusText() {
    const { store } = this;
    const loaded = store.volumes.length;
    let text = store.complete ? counted(loaded, "volume")
      : `${count(loaded)} loaded of ${store.remaining === null ? "more" : `about ${count(loaded + store.remaining)}`} volumes`;
    if (this.search.value.trim()) text = `${count(this.shown.length)} shown, ${text}`;
    text += this.loading ? ", loading…" : `, as of ${moment(store.loadedAt).slice(11, 16)}`;
    if (this.shown.some((v) => v.sooner)) text += ". “Or less”: the node’s disk fills up, and the volume may go earlier.";
    return text;
  }

  #emptyText() {
    const { store } = this;
    if (store.volumes.length > 0) return `None of ${counted(store.volumes.length, "loaded volume")} matches “${visible(this.search.value)}”.`;
    return `There are no retained volumes ${this.all ? "in any namespace" : `in the namespace ${visible(this.namespace)}`}. A pod’s Katbox volumes are shown here for a while after the pod has ended.`;
  }

  get #list() {
    return { search: this.search, grid: this.grid, searched: () => this.#searched() };
  }

  #searched() {
    if (!this.store) return;
    this.grid.rows.box.scrollTop = 0;
    this.#draw();
    this.#keep();
    clearTimeout(this.saying);
    this.saying = setTimeout(() => announce(`${counted(this.shown.length, "volume")} shown`), 600);
  }

  #sorted(order) {
    this.order = order;
    this.#draw();
    this.#keep();
    const names = Object.fromEntries(columns.map(({ key, title }) => [key, title]));
    announce(order ? `Sorted by ${names[order.replace(/^-/, "")] ?? "Namespace"}` : "The newest first");
  }

  // keep writes the search and the order into the address, so that it leads to the same view.
  #keep() {
    const { namespace, order } = this;
    history.replaceState(null, "", format({ namespace, q: this.search.value.trim(), sort: order }));
  }

  // accepts reports whether a route leads to this view as it is.
  accepts(route) {
    return !route.name && route.namespace === this.namespace && route.q === this.search.value.trim() && route.sort === this.order;
  }

  end() {
    this.#leaving.abort();
    clearInterval(this.timer);
    clearTimeout(this.saying);
    if (this.store) Object.assign(this.store, { place: this.grid.rows.place, active: this.grid.active });
    this.grid.end();
  }
}
