// The arithmetic of long lists: which rows can be seen, and where they are drawn. A browser cannot
// scroll an element of any height, so that above a limit the scroll bar is coarser than the rows: a
// small movement scrolls by as much, a large one by its share of the whole.

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
