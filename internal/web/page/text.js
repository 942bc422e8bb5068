// The loaded part of a text: bytes that follow one another, from the beginning of the file or up to
// its end, and where its lines begin.

const newline = 0x0a;
const decoder = new TextDecoder();

// mostLoaded bounds how much of a file is kept; step is what one request reads.
export const mostLoaded = 64 << 20;
export const step = 1 << 20;
// tail is how many lines are read to show the end of a large file.
const tail = 5000;

export class Text {
  // turn counts the calls of reset: what was asked for before one of them is dropped.
  #turn = 0;

  // read({offset, limit, tailLines}) reads a part of the file, which has size bytes. first is its
  // beginning.
  constructor(read, size, first) {
    Object.assign(this, { read, size, first });
    this.reset();
  }

  // reset goes back to the beginning of the file.
  reset() {
    this.#turn++;
    this.bytes = this.first;
    this.length = this.first.length;
    // begins is where in the file the bytes begin.
    this.begins = 0;
  }

  get complete() {
    return this.begins === 0 && this.atEnd;
  }

  get atEnd() {
    return this.begins + this.length >= this.size;
  }

  // full says that no more can be kept.
  get full() {
    return this.length >= mostLoaded;
  }

  // more, end and earlier return whether there is more since. They return false if the text was reset
  // meanwhile.

  // more reads what follows: a number of bytes.
  async more(signal, wanted = step) {
    const limit = Math.min(wanted, this.size - this.begins - this.length, mostLoaded - this.length);
    if (limit <= 0) return false;
    const turn = this.#turn;
    const { data } = await this.read({ offset: this.begins + this.length, limit, signal });
    if (turn !== this.#turn) return false;
    if (data.length === 0) this.size = this.begins + this.length;
    this.#room(this.length + data.length);
    this.bytes.set(data, this.length);
    this.length += data.length;
    return true;
  }

  #room(length) {
    if (length <= this.bytes.length) return;
    // Memory that was not written yet takes nothing.
    const bytes = new Uint8Array(Math.max(length, Math.min(this.size - this.begins, mostLoaded)));
    bytes.set(this.bytes.subarray(0, this.length));
    this.bytes = bytes;
  }

  // end goes to the last lines of the file.
  async end(signal) {
    const turn = this.#turn;
    const { data, offset } = await this.read({ tailLines: tail, signal });
    if (turn !== this.#turn) return false;
    Object.assign(this, { bytes: data, length: data.length, begins: offset });
    return true;
  }

  // earlier reads what is before: whole lines, as far as they are not longer than a step.
  async earlier(signal) {
    const offset = Math.max(0, this.begins - Math.min(step, mostLoaded - this.length));
    if (offset === this.begins) return false;
    const turn = this.#turn;
    let { data } = await this.read({ offset, limit: this.begins - offset, signal });
    if (turn !== this.#turn) return false;
    if (offset > 0) data = data.subarray(data.indexOf(newline) + 1);
    const bytes = new Uint8Array(data.length + this.length);
    bytes.set(data);
    bytes.set(this.bytes.subarray(0, this.length), data.length);
    Object.assign(this, { bytes, length: bytes.length, begins: this.begins - data.length });
    return true;
  }

  // row returns the text of a row. Bytes that are not UTF-8 are replaced.
  row(lines, row) {
    const [start, end] = lines.bounds(row, this.bytes);
    return decoder.decode(this.bytes.subarray(start, end));
  }
}

// Lines holds where lines of a text begin, as numbers: the bytes of a text are decoded only where they are
// shown. A line that is wider than the page allows takes several rows.
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
