// The loaded part of a text: bytes that follow one another, from the beginning of the file or up to
// its end, in UTF-8 whatever the file is in, and where its lines begin. Of a container's log it is what was printed.

import { graphics, parse } from "./ansi.js";
import { printed, PrintedDecoder } from "./crilog.js";
import { aligned, step } from "./encoding.js";

const newline = 0x0a;
const decoder = new TextDecoder();

// mostLoaded bounds how much of a file is kept.
export const mostLoaded = 64 << 20;

export class Text {
  // turn counts the calls of reset: what was asked for before one of them is dropped.
  #turn = 0;

  // read({offset, limit}) reads a part of the file, which has size bytes. The text begins at origin; first is
  // its beginning.
  constructor(read, size, first, { origin = 0, encoding = "utf-8" } = {}) {
    Object.assign(this, { read, size, first, origin, encoding });
    this.reset();
  }

  // reset goes back to the beginning of the file.
  reset() {
    this.#turn++;
    // begins and ends are the part of the file that bytes are of; length is how many of them there are.
    this.begins = this.origin;
    this.ends = this.origin + this.first.length;
    this.stream = this.#decoder();
    this.bytes = this.#recoded(this.first, this.stream);
    this.length = this.bytes.length;
  }

  // recoded returns bytes of the file in UTF-8. A character that is cut off at their end comes with the next
  // ones if stream is a decoder that goes on.
  #recoded(data, stream) {
    if (this.encoding === "utf-8") return data;
    const text = stream ? stream.decode(data, { stream: !this.atEnd }) : this.#decoder().decode(data);
    return typeof text === "string" ? new TextEncoder().encode(text) : text;
  }

  #decoder() {
    return this.encoding === printed ? new PrintedDecoder() : new TextDecoder(this.encoding);
  }

  get complete() {
    return this.atStart && this.atEnd;
  }

  get atStart() {
    return this.begins === this.origin;
  }

  get atEnd() {
    return this.ends >= this.size;
  }

  // loaded is how much of the file is there, in bytes.
  get loaded() {
    return this.ends - this.begins;
  }

  // full says that no more can be kept.
  get full() {
    return this.length >= mostLoaded;
  }

  // more, end and earlier return whether there is more since. They return false if the text was reset
  // meanwhile.

  // more reads what follows: a number of bytes.
  async more(signal, wanted = step) {
    const limit = Math.min(wanted, this.size - this.ends, mostLoaded - this.length);
    if (limit <= 0) return false;
    const turn = this.#turn;
    const { data } = await this.read({ offset: this.ends, limit, signal });
    if (turn !== this.#turn) return false;
    this.ends += data.length;
    if (data.length === 0) this.size = this.ends;
    const more = this.#recoded(data, this.stream);
    this.#room(this.length + more.length);
    this.bytes.set(more, this.length);
    this.length += more.length;
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
    return this.#before(this.size, new Uint8Array(), signal);
  }

  // earlier reads what is before: whole lines, as far as they are not longer than a step.
  async earlier(signal) {
    return this.#before(this.begins, this.bytes.subarray(0, this.length), signal);
  }

  async #before(begins, behind, signal) {
    const offset = Math.max(this.origin, Math.ceil((begins - Math.min(step, mostLoaded - behind.length)) / aligned) * aligned);
    if (offset >= begins) return false;
    const turn = this.#turn;
    let { data } = await this.read({ offset, limit: begins - offset, signal });
    if (turn !== this.#turn) return false;
    if (offset > this.origin) data = data.subarray(this.#behindLine(data));
    // What follows a part from the end is never read.
    if (behind.length === 0) this.ends = this.size;
    const before = this.#recoded(data);
    const bytes = new Uint8Array(before.length + behind.length);
    bytes.set(before);
    bytes.set(behind, before.length);
    Object.assign(this, { bytes, length: bytes.length, begins: begins - data.length });
    return true;
  }

  // behindLine returns where the first line ends in a part of the file; 0 if none does.
  #behindLine(data) {
    for (let at = data.indexOf(newline); at >= 0; at = data.indexOf(newline, at + 1)) {
      if (this.encoding === "utf-16le") {
        if (at % 2 === 0 && data[at + 1] === 0) return at + 2;
      } else if (this.encoding !== "utf-16be" || at % 2 === 1 && data[at - 1] === 0) return at + 1;
    }
    return 0;
  }

  // row returns the text of a row. Bytes that are not UTF-8 are replaced.
  row(lines, row) {
    const [start, end] = lines.bounds(row, this.bytes);
    return this.between(start, end);
  }

  // runs returns what a terminal makes of a row.
  runs(lines, row) {
    // A row that is full has nothing left of what it was written over.
    const over = lines.isContinued(row + 1) ? null : lines.overwritten(row, this.bytes);
    return parse(this.row(lines, row), lines.styles[row], over ? this.between(over.from, lines.starts[row]) : "");
  }

  // between returns a part of the bytes as text.
  between(start, end) {
    return decoder.decode(this.bytes.subarray(start, end));
  }
}

// mostOverwritten is how many bytes of a line before its last writing are looked at to show it.
const mostOverwritten = 16 << 10;

// Lines holds where lines of a text begin, as numbers: the bytes of a text are decoded only where they are
// shown. A line that is wider than the page allows takes several rows. Of a line that was written over, as
// that of a progress bar, the row is what was written last; unfolded, each writing has a row.
export class Lines {
  // columns is how wide a row may be.
  constructor(columns, unfolded = false) {
    this.columns = columns;
    this.unfolded = unfolded;
    this.count = 0;
    // starts holds where rows begin, styles what their text is shown with there. continued holds, in order, the
    // rows that do not begin a line.
    this.starts = new Float64Array(1024);
    this.styles = new Uint16Array(1024);
    this.continued = [];
    // folded holds, in order, the rows of lines that were written over; lineStarts where these lines begin, and
    // writings how often they were written before the row.
    this.folded = [];
    this.lineStarts = [];
    this.writings = [];
    this.length = 0;
    // widest is the width of the widest row, in columns.
    this.widest = 0;
  }

  // extend indexes the text up to a length. The last line may have been cut off before.
  extend(bytes, length) {
    let at = this.length;
    let continued = false;
    let style = this.ending ?? 0;
    if (this.count > 0 && bytes[at - 1] !== newline) {
      at = this.starts[--this.count];
      style = this.styles[this.count];
      continued = this.continued.at(-1) === this.count;
      if (continued) this.continued.pop();
    }
    if (at < length) this.#begin(at, continued, style);
    this.length = length;
    // ending is the style behind the last line.
    this.ending = this.#scan(bytes, at, length, style);
  }

  #begin(at, continued, style) {
    if (this.count === this.starts.length) {
      for (const name of ["starts", "styles"]) {
        const more = new this[name].constructor(2 * this.count);
        more.set(this[name]);
        this[name] = more;
      }
    }
    if (continued) this.continued.push(this.count);
    this.styles[this.count] = style;
    this.starts[this.count++] = at;
  }

  // again begins a line that is written over from a place on.
  #again(at, style) {
    if (this.unfolded) {
      this.#begin(at, true, style);
      return;
    }
    while (this.continued.length > 0 && this.continued.at(-1) === this.count - 1) {
      this.continued.pop();
      this.count--;
    }
    const row = this.count - 1;
    if (this.folded.at(-1) === row) this.writings[this.writings.length - 1]++;
    else {
      this.folded.push(row);
      this.lineStarts.push(this.starts[row]);
      this.writings.push(1);
    }
    this.starts[row] = at;
    this.styles[row] = style;
  }

  // scan finds the rows of bytes from a place on, where a row has begun, and returns the style at their end.
  #scan(bytes, from, length, style) {
    const { columns } = this;
    // A row is also cut if it has far more bytes than columns.
    const most = 4 * columns + 256;
    let column = 0;
    let start = from;
    let escape = 0; // 1 behind ESC, 2 in a CSI sequence
    let numbers = 0; // where those of the sequence begin
    let returned = false; // the next character is written over the line
    for (let i = from; i < length; i++) {
      const c = bytes[i];
      if (c === newline) {
        if (column > this.widest) this.widest = column;
        column = escape = 0;
        returned = false;
        start = i + 1;
        if (start < length) this.#begin(start, false, style);
        continue;
      }
      if (returned && c !== 0x0d) {
        returned = false;
        if (column > this.widest) this.widest = column;
        // What returns before anything was written writes nothing over.
        if (column > 0) {
          this.#again(i, style);
          start = i;
        }
        column = escape = 0;
      }
      let width = 1;
      if (escape === 1) {
        escape = c === 0x5b ? 2 : 0;
        numbers = i + 1;
        width = 0;
      } else if (escape === 2) {
        if (c >= 0x40 && c <= 0x7e) {
          escape = 0;
          if (c === 0x6d) style = graphics(style, String.fromCharCode(...bytes.subarray(numbers, Math.min(i, numbers + 256))));
          // To column 1, as a carriage return.
          else if (c === 0x47 && (i === numbers || i === numbers + 1 && bytes[numbers] <= 0x31)) returned = true;
        }
        width = 0;
      } else if (c === 0x1b) {
        escape = 1;
        width = 0;
      } else if (c === 0x09) width = 8 - (column % 8);
      else if (c === 0x0d) {
        returned = true;
        width = 0;
      } else if (c === 0x08) width = 0;
      else if (c < 0x20) width = 4;
      else if (c < 0x80) width = 1;
      else if (c < 0xc0) width = 0;
      // Most characters of three bytes, and of four, are as wide as two.
      else if (c >= 0xe0) width = 2;
      if ((width > 0 && column + width > columns && i > start) || i - start >= most) {
        this.widest = Math.max(this.widest, column);
        this.#begin(i, true, style);
        start = i;
        column = 0;
        escape = 0;
        if (c === 0x09) width = 8;
      }
      column += width;
    }
    if (column > this.widest) this.widest = column;
    return style;
  }

  // bounds returns where the bytes of a row begin and end, without the end of its line.
  bounds(row, bytes) {
    const start = this.starts[row];
    const at = this.#fold(row + 1);
    // The next row is where its line was written last; its line begins before that.
    let end = row + 1 >= this.count ? this.length : at >= 0 ? this.lineStarts[at] : this.starts[row + 1];
    if (end > start && bytes[end - 1] === newline) end--;
    return [start, end];
  }

  #fold(row) {
    const at = below(this.folded, row);
    return this.folded[at] === row ? at : -1;
  }

  // overwritten says what a row was written over: where the bytes begin that are looked at for that, and how
  // often it was; null if it was not.
  overwritten(row, bytes) {
    const at = this.#fold(row);
    if (at < 0) return null;
    const start = this.starts[row];
    let from = this.lineStarts[at];
    if (start - from > mostOverwritten) {
      // Not within a character or a sequence.
      const cut = bytes.subarray(start - mostOverwritten, start).indexOf(0x0d);
      from = cut < 0 ? start : start - mostOverwritten + cut + 1;
    }
    return { from, times: this.writings[at] };
  }

  // anyOverwritten reports whether one of some rows was written over.
  anyOverwritten(first, end) {
    return below(this.folded, first) < below(this.folded, end);
  }

  // isContinued reports whether a row continues the line of the row before.
  isContinued(row) {
    return this.continued[below(this.continued, row)] === row;
  }

  // lineOf returns the line that a row is of. The first line is 1.
  lineOf(row) {
    return row + 1 - below(this.continued, row + 1);
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

// below returns how many numbers of an ordered list are below one, by bisection.
function below(list, number) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
