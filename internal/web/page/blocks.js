// Parts of a file that are read where they are shown, and forgotten when others are needed.

// blockSize is how many bytes one request reads, mostBlocks how many of them are kept.
export const blockSize = 64 << 10;
const mostBlocks = 64;
// rest is how many milliseconds the reader has to stay at a place before it is read.
const rest = 60;

export class Blocks {
  #kept = new Map();
  #wanted = [];
  #reading = null;

  // read({offset, limit, signal}) reads a part. arrived is called when there is more, failed when
  // there is a problem.
  constructor(read, size, arrived, failed) {
    Object.assign(this, { read, size, arrived, failed });
  }

  // put keeps what was read for something else: the beginning of the file.
  put(bytes) {
    for (let i = 0; (i + 1) * blockSize <= bytes.length || (bytes.length === this.size && i * blockSize < bytes.length); i++) {
      this.#kept.set(i, bytes.subarray(i * blockSize, (i + 1) * blockSize));
    }
  }

  // get returns bytes that are in one block, or null if they are not there.
  get(offset, length) {
    const number = Math.floor(offset / blockSize);
    const block = this.#kept.get(number);
    if (!block) return null;
    const at = offset - number * blockSize;
    return block.subarray(at, at + length);
  }

  // want says which bytes are looked at now.
  want(offset, end) {
    const first = Math.floor(offset / blockSize);
    const last = Math.floor(Math.max(offset, Math.min(end, this.size) - 1) / blockSize);
    this.#wanted = [];
    for (let i = first; i <= last && i * blockSize < this.size; i++) if (!this.#kept.has(i)) this.#wanted.push(i);
    if (this.#reading && !this.#wanted.includes(this.#reading.number)) this.#reading.abort.abort();
    clearTimeout(this.timer);
    if (this.#wanted.length > 0) this.timer = setTimeout(() => this.#next(), rest);
  }

  async #next() {
    if (this.#reading || this.#wanted.length === 0) return;
    const number = this.#wanted.shift();
    const abort = new AbortController();
    this.#reading = { number, abort };
    try {
      const { data } = await this.read({ offset: number * blockSize, limit: blockSize, signal: abort.signal });
      this.#kept.set(number, data);
      for (const old of [...this.#kept.keys()].slice(0, Math.max(0, this.#kept.size - mostBlocks))) this.#kept.delete(old);
      this.arrived();
    } catch (problem) {
      if (problem.name !== "AbortError") {
        this.#wanted = [];
        this.failed(problem);
      }
    }
    this.#reading = null;
    this.#next();
  }

  end() {
    clearTimeout(this.timer);
    this.#wanted = [];
    this.#reading?.abort.abort();
  }
}
