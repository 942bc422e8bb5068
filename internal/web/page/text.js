// The loaded part of a text: bytes that follow one another, from the beginning of the file or up to
// its end.

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
