// What the lists of volumes have in common: the search, the order, the groups, what is loaded, and what is
// missing.

import { copyButton } from "./command.js";
import { button, el, icon } from "./dom.js";
import { outcomeIcon } from "./facts.js";
import { count, counted, moment } from "./format.js";
import { Grid, matching, moved, ordered, turned, typed } from "./grid.js";
import { cut, visible } from "./names.js";
import { announce, notice, trouble } from "./problem.js";
import { everywhere, format, goneView, byOwner, searchView } from "./route.js";
import { commonOf } from "./searches.js";
import { groupsOf, missingNodes, otherWarnings, VolumeStore } from "./volumestore.js";

// freshFor is how long a list is shown again without asking, when a reader comes back to it.
const freshFor = 5 * 60_000;
// tick is how often ages are written anew.
const tick = 30_000;
// worst are the outcomes of pods, the worst first.
const worst = ["Failed", "Stopped", "Succeeded", ""];

// ListView shows the volumes of a namespace, or of all. A list of its own kind extends it: cells(volume,
// now) returns what is in a row's columns without the namespace, groupCells(group, now) what is in those of
// a group, by column, emptyText() says that there is nothing, and note() what the status adds.
export class ListView {
  #leaving = new AbortController();

  // columns, values, largestFirst and standard are how the list can be sorted: keys and titles, the values of a
  // volume by column, the columns of which the largest come first, and the order of the server, which first
  // says in words. kind is the class of the grid, placeholder is shown in the search, and gone says which
  // volumes the list has.
  constructor(app, route, { title, kind, gone, columns, values, largestFirst, standard, first, placeholder }) {
    const { namespace } = route;
    const all = namespace === everywhere;
    Object.assign(this, { app, namespace, all, title, gone, values, standard, first, order: route.sort, grouped: route.group === byOwner });
    // The status leads, also before the namespace.
    this.columns = columns.toSpliced(1, 0, ...(all ? [["namespace", "Namespace"]] : [])).map(([key, title_]) => ({ key, title: title_, sort: true }));
    this.heading = el("h1", { tabindex: -1 }, title);
    this.search = el("input", {
      type: "search", id: "search", class: "search", placeholder, "aria-label": "Search the loaded volumes",
      autocomplete: "off", spellcheck: "false", on: { input: () => this.#searched(), keydown: (event) => moved(event, this.#list) },
    });
    this.search.value = route.q;
    this.status = el("p", { class: "status" });
    this.notices = el("div", { class: "notices" });
    this.empty = el("p", { class: "empty", hidden: true });
    this.retainedLink = el("a", { "aria-current": gone ? null : "true" }, "Retained");
    this.goneLink = el("a", { "aria-current": gone ? "true" : null }, "Gone");
    this.filesLink = el("a", {}, "Search in files");
    this.grid = new Grid({
      label: title, kind: all ? `${kind} all` : kind, columns: this.columns, cells: (item) => this.#cells(item),
      member: (item) => this.grouped && !item.members, fold: (item, open) => this.#fold(item, open),
      sorted: (key) => this.#sorted(turned(this.order || standard, key, largestFirst.includes(key))),
      typed: (key) => typed(key, this.#list), above: () => this.search.focus(),
    });
    this.group = button("Group by owner", () => this.#group(), { icon: "group", id: "group", class: "quiet slim" });
    this.root = el("div", { class: "view" },
      el("div", { class: "bar" }, this.heading,
        el("nav", { class: "kinds", "aria-label": "Which volumes" }, this.retainedLink, this.goneLink, this.filesLink),
        el("div", { class: "tools" }, this.search, this.group,
          copyButton(app, () => ({ namespace, gone }), { class: "quiet slim" }),
          button("Refresh", () => this.load(), { icon: "refresh", class: "quiet slim", id: "refresh", asks: true }))),
      this.notices, this.status, this.grid.root, this.empty);
    // open are the groups whose members are shown, or with a search those whose are not.
    this.open = new Set();
    this.#link();
  }

  begin() {
    this.timer = setInterval(() => this.grid.rows.redrawAll(), tick);
    const { kept } = this;
    if (kept?.namespace === this.namespace && kept.complete && Date.now() - kept.loadedAt < freshFor) {
      this.store = kept;
      this.open = kept.open ?? this.open;
      this.#draw();
      this.grid.rows.reveal(Math.floor(kept.place ?? 0), "start");
      this.grid.focus(kept.active ?? 0);
      return;
    }
    this.load();
  }

  // kept is the list of this kind that was loaded last.
  get kept() {
    return this.gone ? this.app.goneStore : this.app.store;
  }

  set kept(store) {
    if (this.gone) this.app.goneStore = store;
    else this.app.store = store;
  }

  // load loads the list. What was shown stays until there is as much again, so that no row jumps away.
  async load() {
    this.#leaving.abort();
    this.#leaving = new AbortController();
    const { signal } = this.#leaving;
    const store = new VolumeStore(this.namespace, { gone: this.gone });
    this.loading = true;
    this.problem = null;
    this.#say();
    try {
      await store.load(() => {
        const first = this.store !== store;
        if (first && this.store && !store.complete && store.volumes.length < this.store.volumes.length) return;
        this.store = this.kept = store;
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
    this.shown = ordered(matching(this.store.volumes, this.search.value, (v) => v.text), this.order, this.values);
    this.grid.sortedBy(this.order || this.standard);
    this.grid.show(this.grouped ? this.#folded() : this.shown);
    this.group.setAttribute("aria-pressed", String(this.grouped));
    this.#link();
    this.#say();
  }

  // folded returns the groups, and behind each the volumes in it if they are to be seen.
  #folded() {
    const groups = ordered(groupsOf(this.shown), this.order, { ...this.values, kept: null, why: null, volume: null, left: (g) => g.left, gone: (g) => g.gone, retained: (g) => g.retained });
    this.groups = groups.length;
    return groups.flatMap((group) => (this.#isOpen(group) ? [group, ...group.members] : [group]));
  }

  #isOpen({ key }) {
    return this.open.has(key) !== Boolean(this.search.value.trim());
  }

  // fold shows the members of a group, or hides them.
  #fold(group, open) {
    if (!group?.members || open === this.#isOpen(group)) return;
    if (!this.open.delete(group.key)) this.open.add(group.key);
    this.#draw();
  }

  #group() {
    this.grouped = !this.grouped;
    this.#draw();
    this.#keep();
    announce(this.grouped ? `${counted(this.groups, "owner")} shown` : `${counted(this.shown.length, "volume")} shown`);
  }

  #cells(item) {
    const now = Date.now();
    const cells = item.members ? this.#groupCells(item, now) : this.cells(item, now);
    return this.all ? cells.toSpliced(1, 0, el("span", { title: item.namespace }, cut(item.namespace))) : cells;
  }

  #groupCells(group, now) {
    const open = this.#isOpen(group);
    const { more, ...facts } = this.groupCells(group, now);
    const all = counted(group.members.length, "volume");
    // Failed leads, and what is not known stays away where there is enough else.
    const outcomes = [...group.outcomes].sort(([a], [b]) => worst.indexOf(a) - worst.indexOf(b)).slice(0, worst.length - 1);
    const failed = group.outcomes.get("Failed");
    const fold = el("button", { type: "button", class: "plain fold", "aria-expanded": String(open), title: visible(group.owner), on: { click: () => this.#fold(group, !open) } },
      icon("down"), el("span", { class: "owner-name" }, cut(group.owner || "no owner")));
    facts.outcome = el("span", { class: "outcomes" }, outcomes.map(([outcome, number]) =>
      el("span", { class: "outcome-of", title: `${number} ${visible(outcome) || "unknown"}` }, outcomeIcon(outcome), el("span", { class: "number" }, count(number)), el("span", { class: "unseen" }, ` ${visible(outcome) || "unknown"}`))));
    facts.pod = [fold, el("span", { class: "more" }, [failed && `${count(failed)} failed`, all, ...more].filter(Boolean).join(" · "))];
    facts.owner = all;
    return this.columns.filter(({ key }) => key !== "namespace").map(({ key }) => facts[key] ?? "");
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
    if (none) this.empty.textContent = store.volumes.length === 0 ? this.emptyText() : `None of ${counted(store.volumes.length, "loaded volume")} matches “${visible(this.search.value)}”.`;
  }

  #statusText() {
    const { store } = this;
    const loaded = store.volumes.length;
    let text = store.complete ? counted(loaded, "volume")
      : `${count(loaded)} loaded of ${store.remaining === null ? "more" : `about ${count(loaded + store.remaining)}`} volumes`;
    if (this.search.value.trim()) text = `${count(this.shown.length)} shown, ${text}`;
    return text + (this.loading ? ", loading…" : `, as of ${moment(store.loadedAt).slice(11, 16)}`) + this.note();
  }

  // where says which namespace the list is of, in the middle of a sentence.
  get where() {
    return this.all ? "in any namespace" : `in the namespace ${visible(this.namespace)}`;
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
    const names = Object.fromEntries(this.columns.map(({ key, title }) => [key, title]));
    announce(order ? `Sorted by ${names[order.replace(/^-/, "")]}` : this.first);
  }

  // keep writes the search and the order into the address, so that it leads to the same view.
  #keep() {
    const { namespace, order } = this;
    history.replaceState(null, "", format({ namespace, q: this.search.value.trim(), sort: order, group: this.grouped ? byOwner : "", view: this.gone ? goneView : "" }));
    this.#link();
  }

  // link makes the links to the two lists take the search along, and that to the files what all that is shown belongs to.
  #link() {
    const place = { namespace: this.namespace, q: this.search.value.trim(), group: this.grouped ? byOwner : "" };
    this.retainedLink.href = format(place);
    this.goneLink.href = format({ ...place, view: goneView });
    this.filesLink.href = format({ namespace: this.namespace, view: searchView, of: this.search.value.trim() ? commonOf(this.shown ?? []) : "" });
  }

  // accepts reports whether a route leads to this view as it is.
  accepts(route) {
    return !route.name && route.namespace === this.namespace && route.view === (this.gone ? goneView : "") &&
      route.q === this.search.value.trim() && route.sort === this.order && (route.group === byOwner) === this.grouped;
  }

  end() {
    this.#leaving.abort();
    clearInterval(this.timer);
    clearTimeout(this.saying);
    if (this.store) Object.assign(this.store, { place: this.grid.rows.place, active: this.grid.active, open: this.open });
    this.grid.end();
  }
}
