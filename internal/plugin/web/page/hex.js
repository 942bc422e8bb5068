// A file as hexadecimal numbers. It is read where it is shown.

import { el } from "./dom.js";
import { count } from "./format.js";
import { Rows } from "./rows.js";

const pairs = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, "0"));

// offset writes where a row begins, in at least 8 digits.
export function offset(at) {
  return at.toString(16).padStart(8, "0");
}

// numbers writes the bytes of a row of up to perRow bytes, with a gap after 8.
export function numbers(bytes, perRow) {
  let text = "";
  for (let i = 0; i < perRow; i++) {
    if (i > 0) text += i % 8 === 0 ? "  " : " ";
    text += i < bytes.length ? pairs[bytes[i]] : "  ";
  }
  return text;
}

// characters writes the bytes of a row as ASCII, with a dot for what ASCII does not show.
export function characters(bytes) {
  let text = "";
  for (const byte of bytes) text += byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".";
  return text;
}

// parseOffset reads a place in a file of size bytes: "4096", "0x1000", "10%"; null if it is none.
export function parseOffset(typed, size) {
  const text = typed.trim().replace(/[,_]/g, "");
  let at = NaN;
  if (/^0x[0-9a-f]+$/i.test(text)) at = parseInt(text, 16);
  else if (/^[0-9]+$/.test(text)) at = Number(text);
  else if (/^[0-9.]+%$/.test(text)) at = Math.floor((parseFloat(text) / 100) * size);
  return Number.isNaN(at) ? null : Math.min(at, Math.max(0, size - 1));
}

// Blocks are parts of a file that are read where they are shown, and forgotten when others are needed.
// blockSize is how many bytes one request reads, mostBlocks how many of them are kept.
export const blockSize = 64 << 10;
const mostBlocks = 64;
// rest is how many milliseconds the reader has to stay at a place before it is read.
const rest = 60;

export class Blocks {
  #kept = new Map();
  #wanted = [];
  #reading = null;

  // read({offset, limit, signal}) reads a part. arrived is called when there is more, failed when
  // there is a problem.
  constructor(read, size, arrived, failed) {
    Object.assign(this, { read, size, arrived, failed });
  }

  // put keeps what was read for something else: the beginning of the file.
  put(bytes) {
    for (let i = 0; (i + 1) * blockSize <= bytes.length || (bytes.length === this.size && i * blockSize < bytes.length); i++) {
      this.#kept.set(i, bytes.subarray(i * blockSize, (i + 1) * blockSize));
    }
  }

  // get returns bytes that are in one block, or null if they are not there.
  get(offset, length) {
    const number = Math.floor(offset / blockSize);
    const block = this.#kept.get(number);
    if (!block) return null;
    const at = offset - number * blockSize;
    return block.subarray(at, at + length);
  }

  // want says which bytes are looked at now.
  want(offset, end) {
    const first = Math.floor(offset / blockSize);
    const last = Math.floor(Math.max(offset, Math.min(end, this.size) - 1) / blockSize);
    this.#wanted = [];
    for (let i = first; i <= last && i * blockSize < this.size; i++) if (!this.#kept.has(i)) this.#wanted.push(i);
    if (this.#reading && !this.#wanted.includes(this.#reading.number)) this.#reading.abort.abort();
    clearTimeout(this.timer);
    if (this.#wanted.length > 0) this.timer = setTimeout(() => this.#next(), rest);
  }

  async #next() {
    if (this.#reading || this.#wanted.length === 0) return;
    const number = this.#wanted.shift();
    const abort = new AbortController();
    this.#reading = { number, abort };
    try {
      const { data } = await this.read({ offset: number * blockSize, limit: blockSize, signal: abort.signal });
      this.#kept.set(number, data);
      for (const old of [...this.#kept.keys()].slice(0, Math.max(0, this.#kept.size - mostBlocks))) this.#kept.delete(old);
      this.arrived();
    } catch (problem) {
      if (problem.name !== "AbortError") {
        this.#wanted = [];
        this.failed(problem);
      }
    }
    this.#reading = null;
    this.#next();
  }

  end() {
    clearTimeout(this.timer);
    this.#wanted = [];
    this.#reading?.abort.abort();
  }
}

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
    this.root = el("div", { class: "pane" }, this.box);
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
