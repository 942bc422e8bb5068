// What a container printed, out of what its runtime wrote of that: in each line a time, stdout or stderr, P for a part of a
// line or F for a whole one or its end, and the text. What has not the format is left out, as kubectl does.

// printed is what the file of a log is in, beside the encodings of texts.
export const printed = "printed";

const newline = 0x0a;
// longestHead is how long what comes before the text of a line may be.
const longestHead = 128;
const head = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) ([^ ]*) /;
const ascii = new TextDecoder("windows-1252");

function headOf(bytes) {
  return head.exec(ascii.decode(bytes.subarray(0, longestHead)));
}

// isPrinted reports whether a file that begins with some bytes is a log of a runtime.
export function isPrinted(bytes) {
  return headOf(bytes) !== null;
}

// PrintedDecoder is used as a TextDecoder is, from the beginning of a line on, and returns bytes.
export class PrintedDecoder {
  // held is the beginning of a line that is too short to be read yet.
  #held = new Uint8Array();
  #within = false;
  #partial = false;
  #leftOut = false;

  decode(data, { stream = false } = {}) {
    const bytes = new Uint8Array(this.#held.length + data.length);
    bytes.set(this.#held);
    bytes.set(data, this.#held.length);
    this.#held = new Uint8Array();
    let length = 0; // of what is found so far, which takes the place of what was read
    for (let at = 0; at < bytes.length;) {
      const newlineAt = bytes.indexOf(newline, at);
      const end = newlineAt < 0 ? bytes.length : newlineAt + 1;
      if (!this.#within) {
        if (stream && newlineAt < 0 && end - at < longestHead) {
          this.#held = bytes.slice(at);
          break;
        }
        const found = headOf(bytes.subarray(at, end));
        this.#leftOut = !found;
        this.#partial = found?.[1].split(":")[0] === "P";
        at += found?.[0].length ?? 0;
      }
      this.#within = newlineAt < 0;
      if (!this.#leftOut) {
        const text = bytes.subarray(at, this.#partial && newlineAt >= 0 ? newlineAt : end);
        bytes.set(text, length);
        length += text.length;
      }
      at = end;
    }
    return bytes.subarray(0, length);
  }
}
