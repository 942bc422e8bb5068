// Rows of a long list: only those that can be seen are in the document.

import { el } from "./dom.js";

// Scroller is the arithmetic: which rows can be seen, and where they are drawn. A browser cannot scroll an
// element of any height, so that above a limit the scroll bar is coarser than the rows: a small movement
// scrolls by as much, a large one by its share of the whole.

// mostHeight is the largest height of the scrolled element, in CSS pixels.
export const mostHeight = 8_000_000;

export class Scroller {
  rows = 0;
  rowHeight = 1;
  viewport = 0;
  // position is how many pixels of rows are above the viewport; top is where the scroll bar is.
  position = 0;
  top = 0;

  resize(rows, rowHeight, viewport) {
    // A row keeps its place if its height changes.
    this.position *= rowHeight / this.rowHeight;
    Object.assign(this, { rows, rowHeight, viewport });
    this.position = Math.min(this.position, this.#total());
    return this.place();
  }

  // height is that of the scrolled element.
  get height() {
    return Math.min(this.rows * this.rowHeight, mostHeight);
  }

  #total() {
    return Math.max(0, this.rows * this.rowHeight - this.viewport);
  }

  #range() {
    return Math.max(0, this.height - this.viewport);
  }

  // place moves the scroll bar to where the position wants it, and returns where.
  place() {
    const total = this.#total();
    this.top = total > 0 ? (this.position / total) * this.#range() : 0;
    return this.top;
  }

  // scrolled takes a new place of the scroll bar.
  scrolled(top) {
    const range = this.#range();
    const total = this.#total();
    const moved = top - this.top;
    this.top = top;
    if (total <= range || top <= 0) this.position = Math.max(0, Math.min(top, total));
    else if (top >= range - 0.5) this.position = total;
    else if (Math.abs(moved) <= this.viewport) this.position = Math.max(0, Math.min(this.position + moved, total));
    else this.position = (top / range) * total;
  }

  // show moves the position so that a row can be seen, and returns where the scroll bar is then.
  // where is "start", "center", or "nearest".
  show(row, where = "nearest") {
    const above = row * this.rowHeight;
    const below = above + this.rowHeight - this.viewport;
    let position = this.position;
    if (where === "start") position = above;
    else if (where === "center") position = (above + below) / 2;
    else if (position > above) position = above;
    else if (position < below) position = below;
    this.position = Math.max(0, Math.min(position, this.#total()));
    return this.place();
  }

  // seen returns the rows that can be seen, and some more around them: first, and one behind the last.
  seen(around = 0) {
    const first = Math.floor(this.position / this.rowHeight);
    const last = Math.ceil((this.position + this.viewport) / this.rowHeight);
    return [Math.max(0, first - around), Math.min(this.rows, last + around)];
  }

  // y is where a row is drawn within the scrolled element.
  y(row) {
    return this.top + row * this.rowHeight - this.position;
  }
}

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
