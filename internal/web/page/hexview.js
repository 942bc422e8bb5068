// A file as hexadecimal numbers.

import { Blocks } from "./blocks.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { characters, numbers, offset, parseOffset } from "./hex.js";
import { Rows } from "./rows.js";

// A window that is narrower, in pixels, shows 8 bytes in a row, and not 16.
const narrow = 700;

export class HexView {
  // file has the name, the size and first, its first bytes, and reads others.
  constructor(file) {
    this.file = file;
    this.perRow = innerWidth < narrow ? 8 : 16;
    this.box = el("div", { class: "code hex", tabindex: 0, role: "region", "aria-label": `Bytes of ${file.name}` });
    this.rows = new Rows(this.box, { draw: (i) => this.#row(i), seen: (first, end) => this.#seen(first, end) });
    this.go = el("input", { type: "text", class: "goto", placeholder: "Go to offset", "aria-label": "Go to offset: a number, 0x and hexadecimal digits, or a percentage", autocomplete: "off", spellcheck: "false" });
    this.tools = [el("form", { on: { submit: (event) => this.#went(event) } }, this.go)];
    this.root = this.box;
    this.blocks = new Blocks((q) => file.read(q), file.size, () => this.rows.redrawAll(), (problem) => file.failed(problem));
    this.blocks.put(file.first);
  }

  begin() {
    this.file.say(`${count(this.file.size)} bytes`);
    this.rows.show(Math.ceil(this.file.size / this.perRow));
  }

  #row(i) {
    const at = i * this.perRow;
    const bytes = this.blocks.get(at, this.perRow);
    return el("div", { class: i === this.picked ? "line picked" : "line" },
      el("span", { class: "number" }, offset(at)),
      el("span", { class: "text" }, bytes ? numbers(bytes, this.perRow) : "…"),
      el("span", { class: "ascii" }, bytes ? characters(bytes) : ""));
  }

  #seen(first, end) {
    this.blocks.want(first * this.perRow, end * this.perRow);
  }

  #went(event) {
    event.preventDefault();
    const at = parseOffset(this.go.value, this.file.size);
    this.go.setCustomValidity(at === null ? "Type a number, 0x and hexadecimal digits, or a percentage." : "");
    this.go.reportValidity();
    this.go.setCustomValidity("");
    if (at === null) return;
    this.picked = Math.floor(at / this.perRow);
    this.rows.reveal(this.picked, "start");
    this.rows.redrawAll();
    this.box.focus();
  }

  end() {
    this.blocks.end();
    this.rows.end();
  }
}
