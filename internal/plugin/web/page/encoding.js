// What a text is in, told by its bytes, and where it begins.

// step is how many bytes of a text one request reads, and the beginning that its encoding is told by.
export const step = 1 << 20;
// aligned is a multiple of the size of a character in each encoding.
export const aligned = 4096;

// encodings are those that a text can be shown in, with their names for people.
export const encodings = {
  "utf-8": "UTF-8", "windows-1252": "Latin-1", "utf-16le": "UTF-16 LE", "utf-16be": "UTF-16 BE", "iso-8859-2": "Latin-2",
  "windows-1251": "Windows-1251", "koi8-r": "KOI8-R", shift_jis: "Shift JIS", gb18030: "GB 18030", big5: "Big5", "euc-kr": "EUC-KR",
};

// encodingOf tells by the beginning of a file what its text is in; "" if it is no text. whole says that there
// is nothing behind the beginning. NUL bytes before a text are what is left of a log that was truncated.
export function encodingOf(bytes, whole) {
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  if (bytes[0] === 0xff && bytes[1] === 0xfe && !(bytes[2] === 0 && bytes[3] === 0)) return "utf-16le";
  for (const [encoding, high] of [["utf-16le", 1], ["utf-16be", 0]]) if (isWide(bytes, high, encoding, whole)) return encoding;
  const text = bytes.subarray(blank(bytes));
  if (text.length === 0 || share(text, (c) => controls[c]) > 1 / 32) return "";
  if (decodes("utf-8", text, whole)) return "utf-8";
  // A text in UTF-8 may be damaged. One in Latin-1 has hardly a character that is also one of UTF-8.
  let good = 0;
  let bad = 0;
  for (const [c] of new TextDecoder().decode(text).matchAll(/[^\x00-\x7f]/gu)) c === "\ufffd" ? bad++ : good++;
  return good >= bad ? "utf-8" : "windows-1252";
}

// controls are the bytes that texts do not have.
const controls = Array.from({ length: 256 }, (_, c) => c === 0x7f || c < 0x20 && !"\t\n\v\f\r\b\x1b".includes(String.fromCharCode(c)));

// share returns which part of some bytes is as a test wants it.
function share(bytes, is) {
  let found = 0;
  for (const byte of bytes) if (is(byte)) found++;
  return found / (bytes.length || 1);
}

// A text in UTF-16 that has no mark: most characters are of ASCII, so that every other byte is NUL.
function isWide(bytes, high, encoding, whole) {
  if (bytes.length < 4 || bytes[1 - high] === 0 || bytes[high] !== 0) return false;
  const half = (at) => bytes.subarray(0, bytes.length & ~1).filter((_, i) => i % 2 === at);
  return share(half(high), (c) => c === 0) > 0.4 && share(half(1 - high), (c) => controls[c]) < 1 / 32 && decodes(encoding, bytes, whole);
}

function decodes(encoding, bytes, whole) {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: !whole });
    return true;
  } catch {
    return false;
  }
}

// blank returns how many NUL bytes are at the beginning.
export function blank(bytes) {
  const at = bytes.findIndex((c) => c !== 0);
  return at < 0 ? bytes.length : at;
}

// behindHole finds where the text of a file begins that begins with NUL bytes, far more than can be read: a log
// that was truncated while its writer went on. It looks at some places between, and returns where the text
// begins and the bytes from there on; null if there is none. from is up to where there are NUL bytes.
export async function behindHole(read, from, size) {
  const blankAt = async (offset, limit) => {
    const { data } = await read({ offset, limit });
    return blank(data) === data.length;
  };
  let [low, high] = [Math.floor(from / aligned) * aligned, Math.floor((size - 1) / aligned) * aligned];
  if (await blankAt(high, aligned)) return null;
  while (high - low > step) {
    const middle = Math.floor((low + high) / 2 / aligned) * aligned;
    if (await blankAt(middle, aligned)) low = middle;
    else high = middle;
  }
  const { data } = await read({ offset: low, limit: 2 * step });
  const at = blank(data);
  return { origin: low + at, bytes: data.subarray(at) };
}
