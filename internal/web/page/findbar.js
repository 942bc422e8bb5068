// The field of the search in a text: next, previous, and how many hits there are.

import { button, el } from "./dom.js";
import { Find, mostHits } from "./find.js";
import { count, size } from "./format.js";
import { announce } from "./notice.js";
import { mostLoaded } from "./text.js";

// rest is how many milliseconds after the last key the search begins.
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
    this.more.hidden = !find || view.text.complete || view.text.begins > 0 || view.text.size > mostLoaded;
    if (!find) this.count.textContent = "";
    else {
      const where = view.text.complete ? "" : ` in ${size(view.text.length)}`;
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
