// A table with very many rows: a head by which it is sorted, rows that are drawn as they are seen, a search,
// and the keyboard. Each row has one link or button, which the focus moves among.

import { el } from "./dom.js";
import { Rows } from "./rows.js";

// handle is what of a row has the focus.
function handle(row) {
  return row?.querySelector("a, button");
}

export class Grid {
  #items = [];
  #active = 0;

  // columns are {key, title, sort}. cells(item) returns what is in them, the first with the
  // link or the button. kind is the class of the grid. typed(key) is called for characters, above() when the focus
  // leaves the first row upwards, sorted(key) when a head is pressed. member(item) says that an item is in a
  // group, and fold(item, open) is called when a group is to be opened or closed.
  constructor({ label, kind, columns, cells, sorted, typed, above, member = () => false, fold }) {
    Object.assign(this, { columns, cells, typed, above, member, fold });
    this.heads = columns.map((column, i) => this.#head(column, i, sorted));
    const head = el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row", "aria-rowindex": 1 }, this.heads));
    this.root = el("div", { class: `grid ${kind}`, role: "grid", "aria-label": label, "aria-colcount": columns.length, "aria-readonly": "true" }, head);
    this.rows = new Rows(this.root, { head, role: "rowgroup", draw: (i) => this.#row(i) });
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("click", (event) => this.#pressed(event));
    this.root.addEventListener("focusin", (event) => this.#focused(event));
  }

  #head({ key, title, sort }, i, sorted) {
    const props = { role: "columnheader", class: `cell ${key}`, "aria-colindex": i + 1 };
    if (!sort) return el("div", props, title);
    return el("div", { ...props, "aria-sort": "none" }, el("button", { type: "button", on: { click: () => sorted(key) } }, title));
  }

  #row(i) {
    const item = this.#items[i];
    const cells = this.cells(item).map((content, column) =>
      el("div", { role: "gridcell", class: `cell ${this.columns[column].key}`, "aria-colindex": column + 1 }, content));
    const row = el("div", { role: "row", class: this.member(item) ? "row member" : "row", "aria-rowindex": i + 2, "data-index": i }, cells);
    handle(row)?.setAttribute("tabindex", i === this.#active ? "0" : "-1");
    return row;
  }

  // show replaces the items. The focus stays on the row with the same number.
  show(items) {
    const focused = this.root.querySelector(".rows")?.contains(document.activeElement);
    this.#items = items;
    this.#active = Math.max(0, Math.min(this.#active, items.length - 1));
    this.rows.kept = items.length > 0 ? this.#active : -1;
    this.root.setAttribute("aria-rowcount", items.length + 1);
    this.rows.show(items.length);
    if (focused) handle(this.rows.at(this.#active))?.focus({ preventScroll: true });
  }

  // sortedBy shows in the head what the items are sorted by: a key, with a minus before it if the last
  // come first.
  sortedBy(order) {
    const key = order.replace(/^-/, "");
    for (const [i, column] of this.columns.entries()) {
      if (column.sort) this.heads[i].setAttribute("aria-sort", column.key !== key ? "none" : order === key ? "ascending" : "descending");
    }
  }

  // focus moves the focus to a row.
  focus(index) {
    if (this.#items.length === 0) return;
    this.#activate(Math.max(0, Math.min(index, this.#items.length - 1)));
    this.rows.reveal(this.#active);
    handle(this.rows.at(this.#active))?.focus({ preventScroll: true });
  }

  #activate(index) {
    handle(this.rows.at(this.#active))?.setAttribute("tabindex", "-1");
    this.#active = this.rows.kept = index;
    handle(this.rows.at(index))?.setAttribute("tabindex", "0");
  }

  // active is the row that the focus is on, or was last.
  get active() {
    return this.#active;
  }

  #focused(event) {
    const row = event.target.closest("[data-index]");
    if (row) this.#activate(Number(row.dataset.index));
  }

  // A row is as good to press as its link or button, except while a text is being selected.
  #pressed(event) {
    const row = event.target.closest("[data-index]");
    if (!row || event.target.closest("a, button") || getSelection().toString()) return;
    const { href } = handle(row);
    if (href && (event.ctrlKey || event.metaKey)) open(href, "_blank", "noopener");
    else handle(row).click();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !event.target.closest("[data-index]")) return;
    const last = this.#items.length - 1;
    const to = {
      ArrowDown: this.#active + 1, ArrowUp: this.#active - 1, Home: 0, End: last,
      PageDown: this.#active + this.rows.page, PageUp: this.#active - this.rows.page,
    }[event.key];
    if (to !== undefined) {
      if (to < 0 && this.#active === 0 && event.key === "ArrowUp") this.above?.();
      else this.focus(to);
    } else if (this.fold && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      this.fold(this.#items[this.#active], event.key === "ArrowRight");
    } else if (event.key.length === 1 && event.key !== " " && event.key !== "/" && this.typed) {
      this.typed(event.key);
    } else {
      return;
    }
    event.preventDefault();
  }

  end() {
    this.rows.end();
  }
}

// An order is the key of a column, with a
// minus before it if the last come first; empty is the order in which the server sends.

// words cuts what was typed into words. An item is shown if it has all of them.
export function words(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

// matching returns the items whose text has all words.
export function matching(items, text, textOf) {
  const all = words(text);
  if (all.length === 0) return items.slice();
  return items.filter((item) => {
    const there = textOf(item);
    return all.every((word) => there.includes(word));
  });
}

// ordered sorts items in place by the value of a column. What is not known comes last.
export function ordered(items, order, values) {
  const key = order.replace(/^-/, "");
  const value = values[key];
  if (!value) return items;
  const sign = order === key ? 1 : -1;
  // Each value is computed once. Equal ones stay as the server sent them.
  const keyed = items.map((item, i) => ({ item, i, value: value(item) }));
  keyed.sort((a, b) => {
    const unknown = isUnknown(a.value) - isUnknown(b.value);
    if (unknown !== 0) return unknown;
    if (a.value < b.value) return -sign;
    if (a.value > b.value) return sign;
    return a.i - b.i;
  });
  for (const [i, { item }] of keyed.entries()) items[i] = item;
  return items;
}

function isUnknown(value) {
  return Number(value === null || value === undefined || value === "" || Number.isNaN(value));
}

// turned returns the order when the head of a column is pressed. Sizes and times begin with the
// largest, names with A.
export function turned(order, key, largestFirst) {
  const first = largestFirst ? `-${key}` : key;
  if (order !== first) return order.replace(/^-/, "") === key ? "" : first;
  return largestFirst ? key : `-${key}`;
}

// typed goes on in the search with a letter that was typed in the list.
export function typed(key, { search, searched }) {
  search.focus();
  search.value += key;
  searched();
}

// moved goes from the search into the list, and Escape clears the search before that.
export function moved(event, { search, searched, grid }) {
  if (event.key === "ArrowDown" || event.key === "Enter") grid.focus(event.key === "Enter" ? 0 : grid.active);
  else if (event.key === "Escape" && search.value) {
    search.value = "";
    searched();
  } else if (event.key === "Escape") grid.focus(grid.active);
  else return;
  event.preventDefault();
}
