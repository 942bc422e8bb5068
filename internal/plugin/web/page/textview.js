// A file as text, with line numbers, addresses of lines, and a search.

import { printed } from "./crilog.js";
import { button, el } from "./dom.js";
import { encodings, step } from "./encoding.js";
import { FindBar, marked } from "./find.js";
import { count, counted, size } from "./format.js";
import { Lines, mostLoaded, Text } from "./text.js";
import { announce } from "./problem.js";
import { format, parseLines } from "./route.js";
import { Rows } from "./rows.js";

// A window that is narrower, in pixels, wraps lines at first.
const narrow = 700;
// widest is the longest row of a text that is not wrapped, in columns.
const widest = 2000;
// near is how many rows before the end of what is loaded the page reads more.
const near = 200;

export class TextView {
  #loading = null;

  constructor(file, route) {
    this.file = file;
    this.route = route;
    this.wrap = innerWidth < narrow;
    // unfolded says that each writing of a line that was written over is shown.
    this.unfolded = false;
    this.text = new Text((part) => file.read(part), file.size, file.sample.bytes, file.sample);
    this.box = el("div", { class: "code text", tabindex: 0, role: "region", "aria-label": `Text of ${file.name}`, on: { copy: (event) => this.#copied(event) } });
    this.rows = new Rows(this.box, { draw: (i) => this.#row(i), seen: (first, end) => this.#seen(first, end) });
    this.root = el("div", { class: "textview" }, el("div", { class: "pane" }, this.box), this.foot = el("p", { class: "foot" }));
    this.find = new FindBar(this);
    this.line = el("input", { type: "text", inputmode: "numeric", class: "goto", placeholder: "Line", "aria-label": "Go to line, or lines such as 10-20", autocomplete: "off" });
    this.wraps = el("input", { type: "checkbox", id: "wrap", on: { change: () => this.#wrapped(this.wraps.checked) } });
    this.wraps.checked = this.wrap;
    this.unfolds = el("input", { type: "checkbox", id: "unfold", on: { change: () => this.#unfold(this.unfolds.checked) } });
    this.unfolding = el("label", { class: "check", title: "Show all that was written over, as by progress bars", hidden: true }, this.unfolds, "Overwritten");
    const title = file.isPrinted ? "As the container printed it, or in UTF-8 with the time of each line" : "Encoding, told by the bytes of the file";
    this.encoding = el("select", { id: "encoding", "aria-label": "Encoding", title, on: { change: () => file.encode(this.encoding.value) } },
      Object.entries(file.isPrinted ? { [printed]: "As printed", ...encodings } : encodings).map(([value, name]) => el("option", { value, selected: value === this.text.encoding }, name)));
    this.copyPicked = button("Copy lines", () => this.#copyLines(), { hidden: true, id: "copy-lines" });
    this.tools = [
      this.find.root, el("form", { on: { submit: (event) => this.#went(event) } }, this.line), this.copyPicked,
      el("label", { class: "check" }, this.wraps, "Wrap"), this.unfolding,
      button("Start", () => this.#toStart()), button("End", () => this.#toEnd()),
    ];
    this.resized = new ResizeObserver(() => this.wrap && this.#columns() !== this.lines?.columns && this.#index(true));
  }

  begin() {
    this.#index(false);
    this.resized.observe(this.box);
    if (this.file.opensAtEnd && !this.route.lines) this.#openAtEnd();
    else this.#pick(this.route.lines);
  }

  // What a pod that failed wrote last says why.
  async #openAtEnd() {
    await this.#loadEnd();
    if (this.ended) return;
    // What says so takes room. Nothing is said if all of the file can be seen.
    this.openedAtEnd = true;
    this.#say();
    this.rows.reveal(this.lines.count - 1);
    this.openedAtEnd = this.rows.place > 0 || !this.text.atStart;
    this.#say();
  }

  update(route) {
    this.route = route;
    this.#pick(route.lines);
  }

  // columns is how many characters fit into a row.
  #columns() {
    if (!this.wrap) return widest;
    const probe = el("span", { class: "probe" }, "0".repeat(100));
    this.box.append(probe);
    const width = probe.getBoundingClientRect().width / 100;
    const gutter = parseFloat(getComputedStyle(this.box).getPropertyValue("--gutter")) || 70;
    probe.remove();
    return Math.max(20, Math.floor((this.box.clientWidth - gutter - 24) / (width || 8)));
  }

  // index finds the rows again; stay keeps the line that is on top.
  #index(stay) {
    const top = stay && this.lines?.count > 0 ? this.lines.lineOf(Math.floor(this.rows.place)) : 1;
    this.lines = new Lines(this.#columns(), this.unfolded);
    this.box.classList.toggle("wrapped", this.wrap);
    this.#extend();
    this.rows.show(this.lines.count);
    if (stay) this.rows.reveal(this.lines.rowOf(top), "start");
    this.find.again(true);
  }

  #extend() {
    this.lines.extend(this.text.bytes, this.text.length);
    this.rows.space.style.minWidth = this.wrap ? "" : `${this.lines.widest + 12}ch`;
    this.#say();
  }

  #say() {
    const { text, lines } = this;
    this.file.say(`${counted(lines.lines, "line")}${text.complete ? "" : " loaded"}`);
    this.unfolding.hidden = lines.folded.length === 0 && !this.unfolded;
    const hole = text.origin > 0 ? `The file begins with ${size(text.origin)} of NUL bytes, which are left out.` : "";
    this.foot.hidden = text.complete && !this.#loading && !this.openedAtEnd && !hole;
    if (this.foot.hidden) return;
    const here = `${size(text.loaded)} of ${size(text.size - text.origin)}`;
    const all = text.size - text.origin <= mostLoaded;
    const parts = [this.openedAtEnd && "Opened at its end: the pod failed.", hole,
      this.#loading ? `${here}, loading…` : text.complete ? "" : text.atStart ? `The first ${here}.` : `The last ${here}. Lines are counted from the end.`].filter(Boolean);
    if (this.openedAtEnd) parts.push(button("Go to the start", () => this.#toStart(), { id: "to-start" }));
    if (!this.#loading && !text.atStart) parts.push(button("Load earlier lines", () => this.#earlier()));
    if (!this.#loading && !text.atEnd && !text.full) parts.push(button("Load more", () => this.#more()));
    if (!this.#loading && text.atStart && all && !text.complete) parts.push(button("Load all", () => this.loadAll(), { id: "load-all" }));
    if (!all) parts.push(`The page holds at most ${size(mostLoaded)}; download the file to see all of it.`);
    this.foot.replaceChildren(...parts.map((part) => (typeof part === "string" ? el("span", {}, part) : part)));
  }

  // exclusive runs a load after the one that runs, and shows its problem.
  async #exclusive(load) {
    while (this.#loading) await this.#loading;
    if (this.ended) return;
    const { promise, resolve } = latch();
    this.#loading = promise;
    this.#say();
    try {
      await load();
    } catch (problem) {
      if (problem.name !== "AbortError") this.file.failed(problem);
      this.stuck = true;
    } finally {
      this.#loading = null;
      resolve();
      if (!this.ended) this.#say();
    }
  }

  async #step(wanted) {
    if (!await this.text.more(undefined, wanted) || this.ended) return;
    this.#extend();
    this.rows.grow(this.lines.count);
    // The last row may have been cut off.
    this.rows.redrawAll();
    this.find.again(false);
  }

  #more() {
    return this.#exclusive(() => this.#step(step));
  }

  // loadAll loads the whole file, if the page can hold it.
  loadAll() {
    return this.#exclusive(async () => {
      while (!this.ended && !this.text.atEnd && !this.text.full) await this.#step(8 * step);
    });
  }

  #earlier() {
    return this.#exclusive(async () => {
      const before = this.lines.lines;
      if (!await this.text.earlier() || this.ended) return;
      const top = Math.floor(this.rows.place);
      const fromEnd = before - this.lines.lineOf(top);
      this.#index(false);
      this.rows.reveal(this.lines.rowOf(this.lines.lines - fromEnd), "start");
    });
  }

  #toStart() {
    this.openedAtEnd = false;
    if (!this.text.atStart) {
      this.text.reset();
      this.#index(false);
    }
    this.#say();
    this.rows.reveal(0, "start");
    this.box.focus();
  }

  async #toEnd() {
    await this.#loadEnd();
    if (this.ended) return;
    this.rows.reveal(this.lines.count - 1);
    this.box.focus();
    announce("The end of the file");
  }

  async #loadEnd() {
    if (this.text.atEnd) return;
    if (this.text.size - this.text.origin <= 8 * step) {
      await this.loadAll();
      return;
    }
    await this.#exclusive(async () => {
      if (await this.text.end() && !this.ended) this.#index(false);
    });
  }

  #seen(first, end) {
    if (this.text.atStart && !this.stuck && !this.#loading && end + near >= this.rows.count && first > 0) this.#more();
  }

  // numberOf returns the number of the line of a row: from the end, if it is not known from the start.
  #numberOf(row) {
    const line = this.lines.lineOf(row);
    return this.text.atStart ? line : line - this.lines.lines - 1;
  }

  // rowOf returns the row where a line begins; -1 if it is not loaded.
  #rowOf(number) {
    const line = number > 0 ? (this.text.atStart ? number : -1) : this.text.atEnd ? this.lines.lines + 1 + number : -1;
    return line < 1 || line > this.lines.lines ? -1 : this.lines.rowOf(line);
  }

  // pick marks lines, loads as far as they are, and goes there.
  async #pick(lines) {
    this.picked = lines;
    this.copyPicked.hidden = !lines;
    if (!lines) {
      this.rows.redrawAll();
      return;
    }
    if (lines.from < 0) await this.#loadEnd();
    else {
      if (!this.text.atStart) this.#toStart();
      await this.#exclusive(async () => {
        while (!this.ended && this.picked === lines && this.#rowOf(lines.from) < 0 && !this.text.atEnd && !this.text.full) await this.#step(8 * step);
      });
    }
    if (this.ended || this.picked !== lines) return;
    const row = this.#rowOf(lines.from);
    this.rows.redrawAll();
    if (row >= 0) this.rows.reveal(row, row > 0 ? "center" : "start");
    else if (this.text.full) announce(`Line ${lines.from} is beyond the ${size(mostLoaded)} that the page can hold`);
    else announce(`The file has ${counted(this.lines.lines, "line")} only`);
  }

  #isPicked(number) {
    if (!this.picked) return false;
    const { from, to } = this.picked;
    if (from > 0 === number > 0) return number >= from && number <= to;
    // Both are known if the whole file is loaded.
    const other = number - this.lines.lines - 1;
    return this.text.complete && other >= from && other <= to;
  }

  #row(i) {
    const number = this.#numberOf(i);
    const continued = this.lines.isContinued(i);
    const gutter = continued ? el("span", { class: "number", "aria-hidden": "true" }, "·") : el("a", {
      class: "number", href: this.#address({ from: number, to: number }), tabindex: -1, "aria-label": `Line ${number}`,
      on: { click: (event) => this.#numberPressed(event, number) },
    }, String(number));
    return el("div", { class: this.#isPicked(number) ? "line picked" : "line", "data-continued": continued },
      gutter, el("span", { class: "text" }, this.#runs(i)), this.#overwritten(i));
  }

  // Behind a line that was written over, a button shows all that was written.
  #overwritten(i) {
    const { lines, text } = this;
    const over = lines.isContinued(i + 1) ? null : lines.overwritten(lines.rowOf(lines.lineOf(i)), text.bytes);
    if (!over) return null;
    return button(`+${count(over.times)}`, () => this.#unfold(true, i), { class: "over", tabindex: -1, title: `Written over ${counted(over.times, "time")}: show all of it` });
  }

  #unfold(unfolded, row = Math.floor(this.rows.place)) {
    const line = this.lines.lineOf(Math.min(row, this.lines.count - 1));
    this.unfolded = this.unfolds.checked = unfolded;
    this.#index(false);
    this.rows.reveal(this.lines.rowOf(line), "start");
    this.box.focus({ preventScroll: true });
  }

  #runs(i) {
    const runs = this.text.runs(this.lines, i);
    const { find } = this.find;
    if (!find) return runs.map(shown);
    const found = find.inRow(i);
    const current = this.find.currentIn(i);
    return marked(runs, found, find.needle.length).map((run) =>
      run.hit < 0 ? shown(run) : el("mark", { class: run.hit === current ? "current" : null }, shown(run)));
  }

  #address(lines) {
    const { id, ref, route } = this.file;
    return format({ ...id, ref, view: route.view, lines });
  }

  // A number puts the address of its line into the address bar and the clipboard; with Shift, that of
  // all lines from the marked ones to this.
  #numberPressed(event, number) {
    if (event.ctrlKey || event.metaKey || event.button !== 0) return;
    event.preventDefault();
    const lines = event.shiftKey && this.picked && this.picked.from > 0 === number > 0
      ? { from: Math.min(this.picked.from, number), to: Math.max(this.picked.from, number) }
      : { from: number, to: number };
    history.replaceState(null, "", this.#address(lines));
    this.route = { ...this.route, lines };
    this.file.route = { ...this.file.route, lines };
    this.picked = lines;
    this.copyPicked.hidden = false;
    this.rows.redrawAll();
    this.#toClipboard(location.href, `The address of line ${lines.from === lines.to ? lines.from : `${lines.from} to ${lines.to}`} is copied`);
  }

  async #toClipboard(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      this.file.view.app.toast(said);
    } catch {
      this.file.view.app.toast("The browser did not allow copying");
    }
  }

  #copyLines() {
    const { from, to } = this.picked;
    const first = this.#rowOf(from);
    if (first < 0) return;
    const lines = [];
    for (let row = first; row < this.lines.count && this.#numberOf(row) <= (from > 0 === this.#numberOf(row) > 0 ? to : Infinity); row++) {
      if (lines.length > to - from && !this.lines.isContinued(row)) break;
      const text = this.text.runs(this.lines, row).map((run) => run.text).join("");
      if (this.lines.isContinued(row)) lines[lines.length - 1] += text;
      else lines.push(text);
    }
    this.#toClipboard(`${lines.join("\n")}\n`, `${counted(lines.length, "line")} copied`);
  }

  // A selection is copied without the numbers, and long lines in one piece.
  #copied(event) {
    const selected = getSelection();
    if (selected.rangeCount === 0) return;
    const rows = [...selected.getRangeAt(0).cloneContents().querySelectorAll(".line")];
    if (rows.length === 0) return;
    const text = rows.map((row, i) => `${i > 0 && row.dataset.continued === undefined ? "\n" : ""}${row.querySelector(".text")?.textContent ?? ""}`);
    event.clipboardData.setData("text/plain", text.join(""));
    event.preventDefault();
  }

  #went(event) {
    event.preventDefault();
    const { from, to } = parseLines(this.line.value.trim()) ?? {};
    this.line.setCustomValidity(from ? "" : "Type the number of a line, or two with a minus between them.");
    this.line.reportValidity();
    this.line.setCustomValidity("");
    if (!from) return;
    this.file.view.app.go(this.#address({ from, to }));
    this.box.focus();
  }

  #wrapped(wrap) {
    this.wrap = wrap;
    this.#index(true);
  }

  end() {
    this.ended = true;
    this.find.end();
    this.resized.disconnect();
    this.rows.end();
  }
}

// latch returns a promise, and what fulfils it.
function latch() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return { promise, resolve };
}

function shown({ text, classes, odd }) {
  if (!odd && !classes) return text;
  return el("span", { class: `${odd ? "odd " : ""}${classes}`.trim() }, text);
}
