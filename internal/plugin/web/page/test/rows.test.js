import assert from "node:assert/strict";
import test from "node:test";

import { Blocks, blockSize } from "../hex.js";
import { Find } from "../find.js";
import { behindHole, encodingOf } from "../encoding.js";
import { Lines, Text } from "../text.js";
import { mostHeight, Scroller } from "../rows.js";

const encoder = new TextEncoder();

function scroller(rows, rowHeight = 20, viewport = 500) {
  const s = new Scroller();
  s.resize(rows, rowHeight, viewport);
  return s;
}

test("a short list scrolls as it is", () => {
  const s = scroller(100_000);
  assert.equal(s.height, 2_000_000);
  s.scrolled(1000);
  assert.deepEqual(s.seen(), [50, 75]);
  assert.equal(s.y(50), 1000);
  s.scrolled(1_999_500);
  assert.deepEqual(s.seen(3), [99_972, 100_000]);
  assert.equal(s.show(10, "start"), 200);
  assert.equal(s.show(20), 200);
  assert.equal(s.show(40), 320);
  assert.equal(s.show(3), 60);
  assert.deepEqual(scroller(0).seen(5), [0, 0]);
});

test("a list that is higher than browsers allow shows each row", () => {
  const rows = 62_500_000_000;
  const s = scroller(rows);
  assert.equal(s.height, mostHeight);
  s.scrolled(100);
  assert.equal(s.position, 100);
  s.scrolled(mostHeight - 500);
  assert.equal(s.seen()[1], rows);
  s.scrolled((mostHeight - 500) / 2);
  assert.ok(Math.abs(s.seen()[0] / rows - 0.5) < 0.001);
  const top = s.show(12_345_678_901, "start");
  assert.equal(s.seen()[0], 12_345_678_901);
  s.scrolled(top + 40);
  assert.equal(s.seen()[0], 12_345_678_903);
  assert.ok(Math.abs(s.y(12_345_678_903) - top - 40) < 0.001);
  s.scrolled(0);
  assert.equal(s.position, 0);
});

test("a row keeps its place when rows become higher", () => {
  const s = scroller(1000);
  s.scrolled(2000);
  s.resize(1000, 40, 500);
  assert.equal(s.seen()[0], 100);
  s.resize(10, 40, 500);
  assert.equal(s.position, 0);
});

// rowsOf indexes a text in pieces, and returns its rows.
function rowsOf(text, columns, cuts) {
  const bytes = typeof text === "string" ? encoder.encode(text) : text;
  const lines = new Lines(columns);
  for (const cut of [...cuts, bytes.length]) lines.extend(bytes, cut);
  const decoder = new TextDecoder();
  return Array.from({ length: lines.count }, (_, row) => {
    const text_ = decoder.decode(bytes.subarray(...lines.bounds(row, bytes)));
    return `${lines.isContinued(row) ? "+" : lines.lineOf(row)}:${text_}`;
  });
}

test("lines are found, whatever pieces a text comes in", () => {
  const text = "one\n\ntwo is longer\r\nthree äöü 你好 \x1b[31mred\x1b[0m\tend\n" + "x".repeat(25) + "\nlast";
  const whole = rowsOf(text, 12, []);
  assert.deepEqual(whole.slice(0, 4), ["1:one", "2:", "3:two is longe", "+:r\r"]);
  assert.deepEqual(whole.slice(-4), ["5:xxxxxxxxxxxx", "+:xxxxxxxxxxxx", "+:x", "6:last"]);
  const length = encoder.encode(text).length;
  for (let cut = 0; cut <= length; cut++) assert.deepEqual(rowsOf(text, 12, [cut]), whole, `cut at ${cut}`);
  assert.deepEqual(rowsOf(text, 12, Array.from({ length }, (_, i) => i)), whole);
});

test("the ends of texts", () => {
  assert.deepEqual(rowsOf("", 80, []), []);
  assert.deepEqual(rowsOf("a", 80, []), ["1:a"]);
  assert.deepEqual(rowsOf("a\n", 80, [1]), ["1:a"]);
  assert.deepEqual(rowsOf("\n\n", 80, []), ["1:", "2:"]);
});

test("rows are not cut within a character, and a row of odd bytes ends", () => {
  for (const row of rowsOf("你".repeat(100), 21, [])) assert.ok(!row.includes("\ufffd"), row);
  const odd = new Uint8Array(10_000).fill(0x80);
  assert.ok(rowsOf(odd, 20, []).length > 20);
  // Colors take no room.
  assert.deepEqual(rowsOf("\x1b[1;31m1234567890\x1b[0m\n", 10, []).length, 1);
});

test("lines and rows lead to each other", () => {
  const bytes = encoder.encode(Array.from({ length: 3000 }, (_, i) => "y".repeat(i % 37)).join("\n"));
  const lines = new Lines(10);
  lines.extend(bytes, bytes.length);
  assert.equal(lines.lines, 3000);
  for (let line = 1; line <= 3000; line++) {
    const row = lines.rowOf(line);
    assert.equal(lines.lineOf(row), line);
    assert.equal(lines.isContinued(row), false);
  }
});

// file plays a file that is read in parts.
function file(content) {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  const asked = [];
  const read = async (part) => {
    asked.push(part);
    return { data: bytes.slice(part.offset, part.offset + part.limit), offset: part.offset, size: bytes.length };
  };
  return { bytes, read, asked };
}

test("a text is read in parts", async () => {
  const { bytes, read } = file("abcdefghij");
  const text = new Text(read, 10, bytes.slice(0, 4));
  assert.equal(text.atEnd, false);
  await text.more(undefined, 3);
  assert.equal(text.length, 7);
  await text.more();
  assert.ok(text.complete);
  assert.equal(new TextDecoder().decode(text.bytes.subarray(0, text.length)), "abcdefghij");
  await text.more();
  assert.equal(text.length, 10);
});

test("the end of a text, and what is before it", async () => {
  const content = Array.from({ length: 300_000 }, (_, i) => `line ${i}`).join("\n") + "\n";
  const { bytes, read } = file(content);
  const text = new Text(read, bytes.length, bytes.slice(0, 1000));
  await text.end();
  assert.ok(text.atEnd && !text.complete);
  const before = text.begins;
  await text.earlier();
  assert.ok(text.begins < before && text.atEnd);
  assert.equal(bytes[text.begins - 1], 0x0a);
  assert.deepEqual(text.bytes.subarray(0, text.length), bytes.subarray(text.begins));
  while (text.begins > 0) await text.earlier();
  assert.ok(text.complete);
  text.reset();
  assert.equal(text.length, 1000);
});

test("a search finds hits in all rows, also in those that come later", async () => {
  const content = Array.from({ length: 2000 }, (_, i) => (i % 100 === 7 ? `an \x1b[31mEr\x1b[1mror\x1b[0m, error ${i}` : `fine ${i}`)).join("\n");
  const { bytes, read } = file(content);
  const half = bytes.length >> 1;
  const text = new Text(read, bytes.length, bytes.slice(0, half));
  const lines = new Lines(80);
  lines.extend(text.bytes, text.length);
  const find = new Find(text, lines, "ERROR");
  await find.run(() => true);
  const first = find.hits.length;
  assert.ok(first >= 18 && first <= 22, String(first));
  await text.more();
  lines.extend(text.bytes, text.length);
  await find.run(() => true);
  assert.equal(find.hits.length, 40);
  assert.deepEqual(find.hits.slice(0, 4).map((row) => lines.lineOf(row)), [8, 8, 108, 108]);
  assert.deepEqual([find.nth(0), find.nth(1), find.nth(2)], [0, 1, 0]);
  assert.equal(find.behind(50), 2);
  assert.equal(find.behind(99_999), -1);
});

test("a search finds what reaches into the next row of a long line", async () => {
  const bytes = encoder.encode(`${"x".repeat(18)}needle\n`);
  const text = new Text(null, bytes.length, bytes);
  const lines = new Lines(20);
  lines.extend(bytes, bytes.length);
  const find = new Find(text, lines, "needle");
  await find.run(() => true);
  assert.deepEqual(find.hits, [0]);
});

test("blocks are read where they are looked at", async () => {
  const size = 10 * blockSize + 5;
  const asked = [];
  const problems = [];
  let fail = false;
  let arrived;
  const next = () => new Promise((done) => (arrived = done));
  const blocks = new Blocks(async ({ offset, limit }) => {
    asked.push(offset / blockSize);
    if (fail) throw new Error("no");
    return { data: new Uint8Array(Math.min(limit, size - offset)).fill(offset / blockSize) };
  }, size, () => arrived(), (problem) => {
    problems.push(problem);
    arrived();
  });
  blocks.put(new Uint8Array(blockSize + 100));
  assert.equal(blocks.get(blockSize - 16, 16).length, 16);
  assert.equal(blocks.get(blockSize, 16), null);
  let waiting = next();
  blocks.want(10 * blockSize, 20 * blockSize);
  await waiting;
  assert.deepEqual(asked, [10]);
  assert.deepEqual([...blocks.get(10 * blockSize, 16)], [10, 10, 10, 10, 10]);
  fail = true;
  waiting = next();
  blocks.want(5 * blockSize, 5 * blockSize + 16);
  await waiting;
  assert.equal(problems.length, 1);
  blocks.end();
});

test("what comes after the reader went back to the start is dropped", async () => {
  const content = encoder.encode("0123456789\n".repeat(300_000));
  let answer;
  const read = ({ offset, limit }) => new Promise((done) => {
    answer = () => done({ data: content.slice(offset, offset + limit) });
  });
  const first = content.slice(0, 1 << 20);
  for (const late of ["earlier", "more", "end"]) {
    const text = new Text(read, content.length, first);
    if (late === "earlier") {
      const end = text.end();
      answer();
      assert.equal(await end, true);
      assert.equal(text.begins % 11, 0);
      assert.ok(text.begins > content.length - (1 << 20) && text.atEnd);
    }
    const loading = text[late]();
    text.reset();
    answer();
    assert.equal(await loading, false, late);
    assert.equal(text.begins, 0, late);
    assert.equal(text.length, first.length, late);
  }
});

const raw = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const wide = (text, low = 0) => Uint8Array.from([...text].flatMap((c) => (low === 0 ? [c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8] : [c.charCodeAt(0) >> 8, c.charCodeAt(0) & 255])));

test("what a text is in is told by its bytes", () => {
  for (const [bytes, encoding, what] of [
    [raw("plain\n"), "utf-8"], [encoder.encode("Größe 你好\n"), "utf-8"], [encoder.encode("\ufeffbom"), "utf-8"], [raw("Gr\xf6\xdfe 7\n"), "windows-1252"],
    [wide("\ufeffGröße\n"), "utf-16le"], [wide("\ufeffGröße\n", 1), "utf-16be"], [wide("no mark, line\n"), "utf-16le"], [wide("no mark, line\n", 1), "utf-16be"],
    [raw("\0".repeat(5000) + "a log\n"), "utf-8"], [raw("a log" + "\0".repeat(5000)), "", "nothing but NUL bytes behind it"], [raw("\0".repeat(50)), ""], [raw(""), ""],
    [raw("\x00\x01\x02ORDER\xff\xfe" + "\x10\x20".repeat(90)), ""], [raw("\x7fELF\x02\x01\x01" + "\0".repeat(9)), ""],
    [raw("\xff\xfe\0\0a\0\0\0"), "", "UTF-32"], [encoder.encode("ö damaged ä \n").map((c, i) => (i === 0 ? 0xe4 : c)), "utf-8"],
    [raw("colors \x1b[31mred\x1b[0m\r\n"), "utf-8"], [Uint8Array.from({ length: 4096 }, (_, i) => (i * 167 + (i >> 3) * 31) % 256), "", "packed"],
  ]) assert.equal(encodingOf(bytes, true), encoding, what ?? new TextDecoder("latin1").decode(bytes.subarray(0, 20)));
  // A character that is cut off is no evidence.
  const cut = encoder.encode("0123456789 你");
  assert.equal(encodingOf(cut.subarray(0, cut.length - 1), false), "utf-8");
});

test("a text in another encoding is read in parts, from both ends", async () => {
  const lines = Array.from({ length: 90_000 }, (_, i) => `Größe ${i} €`);
  const whole = `${lines.join("\r\n")}\r\n`;
  for (const [encoding, bytes] of [["utf-16le", wide(`\ufeff${whole}`)], ["utf-16be", wide(`\ufeff${whole}`, 1)], ["windows-1252", raw(whole.replaceAll("€", "§"))]]) {
    const { read } = file(bytes);
    const text = new Text(read, bytes.length, bytes.slice(0, 1001), { encoding });
    while (!text.atEnd) await text.more(undefined, 99_999);
    const all = () => new TextDecoder().decode(text.bytes.subarray(0, text.length));
    const wanted = encoding === "windows-1252" ? whole.replaceAll("€", "§") : whole;
    assert.equal(all(), wanted, encoding);
    text.reset();
    await text.end();
    assert.ok(wanted.endsWith(all()) && all().startsWith("Größe"), encoding);
    while (!text.atStart) await text.earlier();
    assert.ok(text.complete);
    assert.equal(all(), wanted, `${encoding} from its end`);
  }
});

test("the text behind a hole of many GiB is found in a few steps", async () => {
  const hole = 40 * 2 ** 30 + 12_345;
  const tail = encoder.encode("first line\n".repeat(200_000));
  let asked = 0;
  const read = async ({ offset, limit }) => {
    asked++;
    const data = new Uint8Array(Math.min(limit, hole + tail.length - offset));
    const from = Math.max(0, hole - offset);
    if (from < data.length) data.set(tail.subarray(offset + from - hole, offset + data.length - hole), from);
    return { data };
  };
  const found = await behindHole(read, 1 << 20, hole + tail.length);
  assert.equal(found.origin, hole);
  assert.deepEqual(found.bytes.subarray(0, 11), tail.subarray(0, 11));
  assert.ok(asked < 25, `${asked} requests`);
  const text = new Text(read, hole + tail.length, found.bytes, { origin: found.origin });
  assert.ok(text.atStart);
  await text.end();
  while (!text.atStart) await text.earlier();
  assert.equal(text.length, tail.length);
  assert.equal(await behindHole(async ({ limit }) => ({ data: new Uint8Array(limit) }), 1 << 20, hole), null);
});

test("a line that was written over has one row, and unfolded one for each writing", () => {
  const text = "start\n" + Array.from({ length: 500 }, (_, i) => `\r${i}%`).join("") + "\nabcdef\rxyz\nend\r\n";
  const bytes = encoder.encode(text);
  const rows = (unfolded, cuts = [], columns = 80) => {
    const lines = new Lines(columns, unfolded);
    for (const cut of [...cuts, bytes.length]) lines.extend(bytes, cut);
    return [lines, Array.from({ length: lines.count }, (_, row) => new TextDecoder().decode(bytes.subarray(...lines.bounds(row, bytes))))];
  };
  const [lines, folded] = rows(false);
  assert.deepEqual(folded, ["start", "499%", "xyz", "end\r"]);
  assert.deepEqual([0, 1, 2, 3].map((row) => lines.overwritten(row, bytes)?.times), [undefined, 499, 1, undefined]);
  assert.equal(lines.lines, 4);
  const { from } = lines.overwritten(2, bytes);
  assert.equal(new TextDecoder().decode(bytes.subarray(from, lines.starts[2])), "abcdef\r");
  const [all, each] = rows(true);
  assert.equal(all.lines, 4);
  assert.equal(each.length, 1 + 500 + 2 + 1);
  for (let cut = 1; cut < bytes.length; cut += 7) {
    assert.deepEqual(rows(false, [cut])[1], folded, `cut at ${cut}`);
    assert.deepEqual(rows(false, [cut])[0].writings, lines.writings, `cut at ${cut}`);
    assert.deepEqual(rows(true, [cut])[1], each, `cut at ${cut}`);
  }
  // In a narrow window the last writing takes several rows, in which nothing is left of those before.
  const narrow = new Lines(10);
  const wide = encoder.encode("\r0123456789abcdef 1%\r0123456789abcdef 2%\n");
  narrow.extend(wide, wide.length);
  const shown = new Text(null, wide.length, wide);
  assert.deepEqual(Array.from({ length: narrow.count }, (_, row) => shown.runs(narrow, row).map((run) => run.text).join("")), ["0123456789", "abcdef 2%"]);
  // What a line was written over is bounded, and begins behind a carriage return.
  const long = encoder.encode("x".repeat(50) + "\ry".repeat(100_000));
  const much = new Lines(20);
  much.extend(long, long.length);
  assert.equal(much.count, 1);
  const over = much.overwritten(0, long);
  assert.equal(over.times, 100_000);
  assert.ok(much.starts[0] - over.from <= 16 << 10 && long[over.from - 1] === 0x0d);
});

test("colors go on over ends of lines, and over rows", () => {
  const bytes = encoder.encode("plain\n\x1b[31mred\nstill red\n\x1b[0mplain\n" + "\x1b[1m" + "b".repeat(30) + "\nbold");
  for (let cut = 1; cut <= bytes.length; cut++) {
    const lines = new Lines(20);
    for (const length of [cut, bytes.length]) lines.extend(bytes, length);
    assert.deepEqual([...lines.styles.subarray(0, lines.count)], [0, 0, 2, 2, 0, 256, 256], `cut at ${cut}`);
  }
});
