// The search in a text. Upper and lower case are the same, and colors are not seen.

import { parse, strip } from "./ansi.js";

const decoder = new TextDecoder();

// mostHits bounds how many hits are kept, block is how many rows are looked at together, slice how many
// milliseconds the search may take before the page draws again.
export const mostHits = 100_000;
const block = 256;
const slice = 25;

// lower returns a text in lower case, with as many characters.
export function lower(text) {
  const all = text.toLowerCase();
  if (all.length === text.length) return all;
  return text.replace(/./gsu, (c) => (c.toLowerCase().length === c.length ? c.toLowerCase() : c));
}

// places returns where a text has a needle, which is in lower case. next is the beginning of the text
// that continues it: a hit may reach into it.
export function places(text, needle, next = "") {
  const there = lower(text + next.slice(0, Math.max(0, needle.length - 1)));
  const found = [];
  for (let at = there.indexOf(needle); at >= 0 && at < text.length; at = there.indexOf(needle, at + needle.length)) found.push(at);
  return found;
}

// marked cuts runs of text where hits begin and end. A piece of a hit has its number as hit.
export function marked(runs, found, length) {
  const cut = [];
  let at = 0;
  let next = 0;
  for (const run of runs) {
    let { text } = run;
    while (text !== "") {
      while (next < found.length && found[next] + length <= at) next++;
      const inside = next < found.length && found[next] <= at;
      const end = next < found.length ? (inside ? found[next] + length : found[next]) : Infinity;
      const piece = text.slice(0, end - at);
      cut.push({ ...run, text: piece, hit: inside ? next : -1 });
      text = text.slice(piece.length);
      at += piece.length;
    }
  }
  return cut;
}

// Find is one search.
export class Find {
  // hits holds the row of each hit, in order.
  hits = [];
  #next = 0;

  constructor(text, lines, query) {
    Object.assign(this, { text, lines, needle: lower(query) });
  }

  // inRow returns where a row has hits.
  inRow(row) {
    return places(this.#shown(row), this.needle, this.#following(row));
  }

  #shown(row) {
    return parse(this.text.row(this.lines, row)).map((run) => run.text).join("");
  }

  #following(row) {
    return row + 1 < this.lines.count && this.lines.isContinued(row + 1) ? this.#shown(row + 1) : "";
  }

  get tooMany() {
    return this.hits.length >= mostHits;
  }

  // run searches what was not searched yet. The last row may have grown since. progress is called from
  // time to time; the search stops when it returns false.
  async run(progress) {
    this.#next = Math.max(0, this.#next - 2);
    while (this.hits.length > 0 && this.hits.at(-1) >= this.#next) this.hits.pop();
    let began = performance.now();
    const { lines, text, needle } = this;
    while (this.#next < lines.count && !this.tooMany) {
      const end = Math.min(this.#next + block, lines.count);
      const [from] = lines.bounds(this.#next, text.bytes);
      // A hit may reach into the row behind the block.
      const [, to] = lines.bounds(Math.min(end, lines.count - 1), text.bytes);
      const whole = decoder.decode(text.bytes.subarray(from, to));
      if (lower(strip(whole)).includes(needle)) {
        for (let row = this.#next; row < end; row++) for (const _ of this.inRow(row)) this.hits.push(row);
      }
      this.#next = end;
      if (performance.now() - began < slice) continue;
      await new Promise((done) => setTimeout(done));
      if (progress() === false) return;
      began = performance.now();
    }
    progress();
  }

  // behind returns the number of the first hit at or behind a row; -1 if there is none yet.
  behind(row) {
    return this.hits.findIndex((hit) => hit >= row);
  }

  // nth returns which hit of its row a hit is.
  nth(hit) {
    let n = 0;
    while (hit - n > 0 && this.hits[hit - n - 1] === this.hits[hit]) n++;
    return n;
  }
}
