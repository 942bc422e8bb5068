// How bytes are written as hexadecimal numbers.

const pairs = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, "0"));

// offset writes where a row begins, in at least 8 digits.
export function offset(at) {
  return at.toString(16).padStart(8, "0");
}

// numbers writes the bytes of a row of up to perRow bytes, with a gap after 8.
export function numbers(bytes, perRow) {
  let text = "";
  for (let i = 0; i < perRow; i++) {
    if (i > 0) text += i % 8 === 0 ? "  " : " ";
    text += i < bytes.length ? pairs[bytes[i]] : "  ";
  }
  return text;
}

// characters writes the bytes of a row as ASCII, with a dot for what ASCII does not show.
export function characters(bytes) {
  let text = "";
  for (const byte of bytes) text += byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".";
  return text;
}

// parseOffset reads a place in a file of size bytes: "4096", "0x1000", "10%"; null if it is none.
export function parseOffset(typed, size) {
  const text = typed.trim().replace(/[,_]/g, "");
  let at = NaN;
  if (/^0x[0-9a-f]+$/i.test(text)) at = parseInt(text, 16);
  else if (/^[0-9]+$/.test(text)) at = Number(text);
  else if (/^[0-9.]+%$/.test(text)) at = Math.floor((parseFloat(text) / 100) * size);
  return Number.isNaN(at) ? null : Math.min(at, Math.max(0, size - 1));
}
