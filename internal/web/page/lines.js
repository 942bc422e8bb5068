// Where lines of a text begin, kept as numbers: the bytes of a text are decoded only where they are
// shown. A line that is wider than the page allows takes several rows.

const newline = 0x0a;

export class Lines {
  // columns is how wide a row may be.
  constructor(columns) {
    this.columns = columns;
    this.count = 0;
    // starts holds where rows begin. continued holds, in order, the rows that do not begin a line.
    this.starts = new Float64Array(1024);
    this.continued = [];
    this.length = 0;
    // widest is the width of the widest row, in columns.
    this.widest = 0;
  }

  // extend indexes the text up to a length. The last line may have been cut off before.
  extend(bytes, length) {
    let at = this.length;
    let continued = false;
    if (this.count > 0 && bytes[at - 1] !== newline) {
      at = this.starts[--this.count];
      continued = this.continued.at(-1) === this.count;
      if (continued) this.continued.pop();
    }
    if (at < length) this.#begin(at, continued);
    this.length = length;
    this.#scan(bytes, at, length);
  }

  #begin(at, continued) {
    if (this.count === this.starts.length) {
      const more = new Float64Array(2 * this.count);
      more.set(this.starts);
      this.starts = more;
    }
    if (continued) this.continued.push(this.count);
    this.starts[this.count++] = at;
  }

  // scan finds the rows of bytes from a place on, where a row has begun.
  #scan(bytes, from, length) {
    const { columns } = this;
    // A row is also cut if it has far more bytes than columns.
    const most = 4 * columns + 256;
    let column = 0;
    let start = from;
    let escape = 0; // 1 behind ESC, 2 in a CSI sequence
    for (let i = from; i < length; i++) {
      const c = bytes[i];
      if (c === newline) {
        if (column > this.widest) this.widest = column;
        column = escape = 0;
        start = i + 1;
        if (start < length) this.#begin(start, false);
        continue;
      }
      let width = 1;
      if (escape === 1) {
        escape = c === 0x5b ? 2 : 0;
        width = 0;
      } else if (escape === 2) {
        if (c >= 0x40 && c <= 0x7e) escape = 0;
        width = 0;
      } else if (c === 0x1b) {
        escape = 1;
        width = 0;
      } else if (c === 0x09) width = 8 - (column % 8);
      else if (c === 0x0d) width = bytes[i + 1] === newline ? 0 : 2;
      else if (c < 0x20) width = 4;
      else if (c < 0x80) width = 1;
      else if (c < 0xc0) width = 0;
      // Most characters of three bytes, and of four, are as wide as two.
      else if (c >= 0xe0) width = 2;
      if ((width > 0 && column + width > columns && i > start) || i - start >= most) {
        this.widest = Math.max(this.widest, column);
        this.#begin(i, true);
        start = i;
        column = 0;
        escape = 0;
        if (c === 0x09) width = 8;
      }
      column += width;
    }
    if (column > this.widest) this.widest = column;
  }

  // bounds returns where the bytes of a row begin and end, without the end of its line.
  bounds(row, bytes) {
    const start = this.starts[row];
    let end = row + 1 < this.count ? this.starts[row + 1] : this.length;
    if (end > start && bytes[end - 1] === newline) end--;
    return [start, end];
  }

  // before returns how many rows before a row do not begin a line, by bisection.
  #before(row) {
    let low = 0;
    let high = this.continued.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.continued[middle] < row) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // isContinued reports whether a row continues the line of the row before.
  isContinued(row) {
    return this.continued[this.#before(row)] === row;
  }

  // lineOf returns the line that a row is of. The first line is 1.
  lineOf(row) {
    return row + 1 - this.#before(row + 1);
  }

  // lines is how many lines there are.
  get lines() {
    return this.count - this.continued.length;
  }

  // rowOf returns the row that begins a line.
  rowOf(line) {
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lineOf(middle) < line) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
