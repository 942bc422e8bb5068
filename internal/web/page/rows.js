// Rows of a long list: only those that can be seen are in the document.

import { el } from "./dom.js";
import { Scroller } from "./scroller.js";

// around is how many rows are drawn above and below those that can be seen.
const around = 8;

export class Rows {
  #scroller = new Scroller();
  #drawn = new Map();
  #planned = 0;
  #head = 0;

  // box is the element that scrolls. draw(index) makes the element of a row. head is an element that
  // stays on top of the box, if there is one. seen(first, end) is called when rows have been drawn.
  constructor(box, { draw, head = null, role = null, seen = () => {} }) {
    Object.assign(this, { box, draw, head, seen });
    this.space = el("div", { class: "rows", role });
    this.count = 0;
    // kept is a row that stays in the document: the one with the focus.
    this.kept = -1;
    box.append(this.space);
    box.addEventListener("scroll", () => {
      this.#scroller.scrolled(box.scrollTop);
      this.#plan();
    }, { passive: true });
    this.watch = new ResizeObserver(() => this.#measure());
    this.watch.observe(box);
  }

  // show draws a number of rows anew. Rows that were drawn are made again.
  show(count) {
    this.count = count;
    for (const row of this.#drawn.values()) row.remove();
    this.#drawn.clear();
    this.#measure();
    this.#render();
  }

  // grow adds rows behind those that there are, which stay as they are.
  grow(count) {
    this.count = count;
    this.#measure();
    this.#render();
  }

  #measure() {
    const height = parseFloat(getComputedStyle(this.box).getPropertyValue("--row")) || 24;
    this.#head = this.head?.offsetHeight ?? 0;
    this.#scroller.scrolled(this.box.scrollTop);
    const top = this.#scroller.resize(this.count, height, Math.max(0, this.box.clientHeight - this.#head));
    this.space.style.height = `${this.#scroller.height}px`;
    if (Math.abs(this.box.scrollTop - top) > 1) this.box.scrollTop = top;
    this.#plan();
  }

  #plan() {
    this.#planned ||= requestAnimationFrame(() => {
      this.#planned = 0;
      this.#render();
    });
  }

  #render() {
    const [first, end] = this.#scroller.seen(around);
    const wanted = new Set();
    for (let i = first; i < end; i++) wanted.add(i);
    if (this.kept >= 0 && this.kept < this.count) wanted.add(this.kept);
    for (const [i, row] of this.#drawn) {
      if (wanted.has(i)) continue;
      row.remove();
      this.#drawn.delete(i);
    }
    // They are in the document in their order, for those who do not see where they are.
    let next = this.space.firstChild;
    for (const i of [...wanted].sort((a, b) => a - b)) {
      let row = this.#drawn.get(i);
      if (!row) {
        row = this.draw(i);
        this.#drawn.set(i, row);
        this.space.insertBefore(row, next);
      } else {
        next = row.nextSibling;
      }
      row.style.transform = `translateY(${Math.round(this.#scroller.y(i))}px)`;
    }
    this.seen(...this.#scroller.seen(0));
  }

  // at returns the element of a row, if it is drawn.
  at(index) {
    return this.#drawn.get(index);
  }

  // redraw makes a row again, if it is drawn.
  redraw(index) {
    const row = this.#drawn.get(index);
    if (!row) return;
    const again = this.draw(index);
    again.style.transform = row.style.transform;
    row.replaceWith(again);
    this.#drawn.set(index, again);
  }

  // redrawAll makes all rows again that are drawn, except the one with the focus.
  redrawAll() {
    for (const [index, row] of [...this.#drawn]) if (!row.contains(document.activeElement)) this.redraw(index);
  }

  // reveal scrolls to a row, and draws it at once.
  reveal(index, where = "nearest") {
    this.#measure();
    this.box.scrollTop = this.#scroller.show(index, where);
    this.#render();
  }

  // sees reports whether the whole of a row can be seen.
  sees(index) {
    return index >= this.place && index + 1 <= this.place + this.#scroller.viewport / this.#scroller.rowHeight;
  }

  // page is how many rows can be seen at once.
  get page() {
    return Math.max(1, Math.floor(this.#scroller.viewport / this.#scroller.rowHeight) - 1);
  }

  // place is how many rows are above what can be seen, as a place to come back to.
  get place() {
    return this.#scroller.position / this.#scroller.rowHeight;
  }

  end() {
    this.watch.disconnect();
    cancelAnimationFrame(this.#planned);
  }
}
