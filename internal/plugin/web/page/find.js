// The search in a text, and its field. Upper and lower case are the same, and colors are not seen.

import { strip } from "./ansi.js";
import { button, el } from "./dom.js";
import { count, size } from "./format.js";
import { announce } from "./problem.js";
import { mostLoaded } from "./text.js";

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
    return this.text.runs(this.lines, row).map((run) => run.text).join("");
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
    this.#next = Math.max(0, Math.min(this.#next, this.lines.count) - 2);
    while (this.hits.length > 0 && this.hits.at(-1) >= this.#next) this.hits.pop();
    let began = performance.now();
    const { lines } = this;
    while (this.#next < lines.count && !this.tooMany) {
      const end = Math.min(this.#next + block, lines.count);
      if (this.#mayHave(end)) {
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

  // mayHave looks at rows together, up to a row. What a terminal makes of a row that was written over is another
  // text than its bytes.
  #mayHave(end) {
    const { lines, text, needle } = this;
    if (lines.anyOverwritten(this.#next, end + 1)) return true;
    const [from] = lines.bounds(this.#next, text.bytes);
    // A hit may reach into the row behind the block.
    const [, to] = lines.bounds(Math.min(end, lines.count - 1), text.bytes);
    const whole = text.between(from, to);
    return whole.includes("\b") || lower(strip(whole)).includes(needle);
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

// FindBar is the field: next, previous, and how many hits there are. rest is how many milliseconds after the last key the search begins.
const rest = 120;

export class FindBar {
  // find is the search that is shown, hit the number of the hit that it is at.
  find = null;
  hit = -1;

  // view shows the text.
  constructor(view) {
    this.view = view;
    this.field = el("input", {
      type: "search", id: "search", class: "search find", placeholder: "Find in file", "aria-label": "Find in file", autocomplete: "off", spellcheck: "false",
      on: { input: () => this.#typed(), keydown: (event) => this.#key(event) },
    });
    this.count = el("span", { class: "count" });
    this.previous = button("↑", () => this.#move(-1), { title: "Previous (Shift+Enter)", "aria-label": "Previous hit", hidden: true });
    this.next = button("↓", () => this.#move(1), { title: "Next (Enter)", "aria-label": "Next hit", hidden: true });
    this.more = button("In the whole file", () => view.loadAll(), { hidden: true, id: "find-all" });
    this.root = el("div", { class: "findbar", role: "search" }, this.field, this.count, this.previous, this.next, this.more);
  }

  #typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.again(true), rest);
  }

  // again searches what was not searched yet, or with anew all.
  again(anew) {
    clearTimeout(this.timer);
    const query = this.field.value;
    if (anew) {
      const { view } = this;
      this.find = query === "" ? null : new Find(view.text, view.lines, query);
      this.hit = -1;
      view.rows.redrawAll();
    }
    if (this.find) this.#run(this.find);
    else this.#say();
  }

  async #run(find) {
    if (this.running === find) {
      this.waiting = true; // there is more text since
      return;
    }
    this.running = find;
    do {
      this.waiting = false;
      await find.run(() => {
        if (find !== this.find) return false;
        const ahead = this.hit < 0 ? find.behind(Math.ceil(this.view.rows.place)) : -1;
        if (ahead >= 0) this.#go(ahead);
        this.#say(true);
        return true;
      });
    } while (this.waiting && find === this.find);
    if (this.running === find) this.running = null;
    if (find !== this.find) return;
    if (this.hit < 0 && find.hits.length > 0) this.#go(0);
    this.#say();
    announce(this.count.textContent);
  }

  #say(searching = false) {
    const { find, view } = this;
    const hits = find?.hits.length ?? 0;
    const text = `${count(hits)}${hits >= mostHits ? "+" : ""}`;
    this.previous.hidden = this.next.hidden = hits === 0;
    this.more.hidden = !find || view.text.complete || !view.text.atStart || view.text.size > mostLoaded;
    if (!find) this.count.textContent = "";
    else {
      const where = view.text.complete ? "" : ` in ${size(view.text.loaded)}`;
      this.count.textContent = `${hits > 0 ? `${count(this.hit + 1)} of ${text}` : searching ? "searching…" : "no hits"}${where}`;
    }
  }

  #go(hit) {
    const { find, view } = this;
    const before = find.hits[this.hit];
    this.hit = hit;
    const row = find.hits[hit];
    view.rows.reveal(row, view.rows.sees(row) ? "nearest" : "center");
    if (before !== undefined) view.rows.redraw(before);
    view.rows.redraw(row);
    const mark = view.rows.at(row)?.querySelector("mark.current");
    // A hit in a long line may be beside the window.
    mark?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.#say();
  }

  #move(by) {
    const hits = this.find?.hits.length ?? 0;
    if (hits === 0) return;
    this.#go((this.hit + by + hits) % hits);
    announce(this.count.textContent);
  }

  // currentIn returns which hit of a row the search is at; -1 if it is at none of them.
  currentIn(row) {
    return this.find && this.hit >= 0 && this.find.hits[this.hit] === row ? this.find.nth(this.hit) : -1;
  }

  #key(event) {
    if (event.key === "Enter") this.#move(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.field.value = "";
      this.again(true);
      this.view.box.focus();
    } else return;
    event.preventDefault();
  }

  end() {
    clearTimeout(this.timer);
    this.find = null;
  }
}
