// A directory of a volume.

import { files } from "./api.js";
import { button, el, icon } from "./dom.js";
import { download } from "./download.js";
import { ago, count, counted, mode, moment, size } from "./format.js";
import { Grid, matching, moved, ordered, turned, typed } from "./grid.js";
import { base, decode, encode, nameOf, parent, visible } from "./names.js";
import { announce } from "./problem.js";
import { format } from "./route.js";

// The first page is small, so that something is on the screen at once.
const firstPage = 500;
const otherPages = 10_000;

const columns = [
  { key: "name", title: "Name", sort: true },
  { key: "size", title: "Size", sort: true },
  { key: "time", title: "Modified", sort: true },
  { key: "mode", title: "Mode" },
  { key: "owner", title: "User:group" },
];
const largestFirst = ["size", "time"];
// standard is the order in which the server sends.
const standard = "name";
const values = { __proto__: null, name: (e) => e.name, size: (e) => e.size, time: (e) => e.time };
const kinds = { __proto__: null, directory: "directory", file: "file", symlink: "symlink" };
const words = {
  __proto__: null,
  fifo: "named pipe", socket: "socket", block: "block device", char: "character device", mount: "mount point: what is below was not in the volume",
};

export class DirectoryView {
  #leaving = new AbortController();

  constructor(view, route) {
    this.view = view;
    this.ref = route.ref;
    this.entries = [];
    this.shown = [];
    this.order = "";
    this.search = el("input", {
      type: "search", id: "search", class: "search", placeholder: "Filter names", "aria-label": "Filter the loaded names",
      autocomplete: "off", spellcheck: "false", on: { input: () => this.#searched(), keydown: (event) => moved(event, this.#list) },
    });
    this.status = el("p", { class: "status" }, "Loading…");
    this.grid = new Grid({
      label: `Files of ${visible(decode(route.ref)) || "the volume"}`, kind: "entries", columns,
      cells: (entry) => this.#cells(entry),
      sorted: (key) => this.#sorted(turned(this.order || standard, key, largestFirst.includes(key))),
      typed: (key) => typed(key, this.#list), above: () => this.search.focus(),
    });
    this.empty = el("p", { class: "empty", hidden: true });
    const tools = el("div", { class: "tools" }, this.search,
      route.ref !== "" && button("Download directory", () => download(view.id, this.ref, "archive", view.notices), { icon: "download", asks: true, id: "archive-directory" }));
    this.bar = el("div", { class: "bar" }, this.status, tools);
    this.root = el("section", { class: "directory", "aria-label": "Files" }, this.bar, this.grid.root, this.empty);
  }

  async begin() {
    const { signal } = this.#leaving;
    this.loading = true;
    try {
      for (let next = "", first = true; next !== "" || first; first = false) {
        const page = await files(this.view.id, { ref: this.ref, limit: first ? firstPage : otherPages, next, signal });
        for (const entry of page.entries) this.entries.push(compact(entry, this.ref));
        next = page.continue ?? "";
        this.loading = next !== "";
        this.#draw();
        if (first) this.#arrive();
      }
      announce(counted(this.entries.length, "entry", "entries"));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.loading = false;
      this.problem = true;
      this.view.trouble(problem, "files");
      this.#say();
    }
  }

  // arrive moves the focus to the first row, or to the one that the reader comes back from.
  #arrive() {
    const from = this.view.cameFrom;
    this.view.cameFrom = this.ref;
    if (!this.view.app.moved) return;
    const at = from ? this.shown.findIndex((e) => refOf(e, this.ref) === from) : 0;
    this.grid.focus(Math.max(0, at));
  }

  #draw() {
    this.shown = ordered(matching(this.entries, this.search.value, (e) => e.name.toLowerCase()), this.order, values);
    if (this.order === "" || this.order === "name" || this.order === "-name") directoriesFirst(this.shown);
    this.grid.sortedBy(this.order || standard);
    this.grid.show(this.shown);
    this.#say();
  }

  #say() {
    const loaded = this.entries.length;
    const text = this.loading ? `${count(loaded)} entries loaded, loading…` : counted(loaded, "entry", "entries");
    this.status.textContent = this.search.value ? `${count(this.shown.length)} shown, ${text}` : text;
    if (this.problem) this.status.textContent += loaded > 0 ? " are loaded; the others could not be read" : "";
    this.bar.hidden = Boolean(this.problem) && loaded === 0;
    const none = this.shown.length === 0 && !(this.loading && loaded === 0) && !this.problem;
    this.grid.root.hidden = this.shown.length === 0;
    this.empty.hidden = !none;
    if (none) this.empty.textContent = loaded > 0 ? `None of ${counted(loaded, "loaded name")} matches “${visible(this.search.value)}”.` : "This directory is empty.";
  }

  #cells(e) {
    const { id } = this.view;
    const ref = refOf(e, this.ref);
    const link = el("a", { href: format({ ...id, ref }), title: visible(e.name) }, nameOf(e.name), e.type === "directory" && el("span", { class: "slash" }, "/"));
    const known = e.type !== "mount";
    const size_ = e.type === "file" ? size(e.size) : "–";
    const time = known && !Number.isNaN(e.time);
    return [
      [
        icon(kinds[e.type] ?? "other"), e.type !== "file" && el("span", { class: "unseen" }, `${words[e.type] ?? e.type} `), link,
        e.type === "symlink" && el("span", { class: "target" }, "→ ", nameOf(e.target ?? "")),
        words[e.type] && el("span", { class: "target" }, words[e.type]),
        el("span", { class: "more" }, [size_, time && ago(e.time, Date.now())].filter((text) => text && text !== "–").join(" · ")),
      ],
      el("span", { title: e.type === "file" ? `${count(e.size)} bytes, ${size(e.allocated)} on the disk` : null }, size_),
      time ? el("span", { title: moment(e.time) }, ago(e.time, Date.now())) : "–",
      el("span", { class: "mono", title: e.mode }, mode(e.type, e.mode)),
      el("span", { class: "mono" }, known ? `${e.uid}:${e.gid}` : ""),
    ];
  }

  get #list() {
    return { search: this.search, grid: this.grid, searched: () => this.#searched() };
  }

  #searched() {
    this.grid.root.scrollTop = 0;
    this.#draw();
    clearTimeout(this.saying);
    this.saying = setTimeout(() => announce(`${counted(this.shown.length, "entry", "entries")} shown`), 600);
  }

  #sorted(order) {
    this.order = order;
    this.#draw();
    announce(`Sorted by ${columns.find(({ key }) => key === order.replace(/^-/, ""))?.title ?? "Name"}`);
  }

  // typeOf returns the entry of a ref, if it is in this directory.
  typeOf(ref) {
    if (parent(ref) !== this.ref || ref === "") return undefined;
    const name = base(ref);
    return this.entries.find((e) => base(refOf(e, this.ref)) === name);
  }

  end() {
    this.#leaving.abort();
    clearTimeout(this.saying);
    this.grid.end();
  }
}

// compact keeps of an entry what the page shows. Its ref is kept only if it does not follow from its
// name: there may be 100,000 of them.
export function compact(entry, directory) {
  const { name, type, target, size: bytes, allocated, mode: bits, uid, gid } = entry;
  const kept = { name, type, size: bytes, allocated, mode: bits, uid, gid, time: Date.parse(entry.mtime) };
  if (target !== undefined) kept.target = target;
  if (entry.ref !== refOf(kept, directory)) kept.ref = entry.ref;
  return kept;
}

// refOf returns the path of an entry of a directory.
export function refOf(entry, directory) {
  if (entry.ref !== undefined) return entry.ref;
  return directory === "" ? encode(entry.name) : `${directory}/${encode(entry.name)}`;
}

// directoriesFirst moves directories to the front, in place; all else stays in its order.
export function directoriesFirst(entries) {
  const others = [];
  let n = 0;
  for (const e of entries) {
    if (e.type === "directory") entries[n++] = e;
    else others.push(e);
  }
  for (const e of others) entries[n++] = e;
  return entries;
}
