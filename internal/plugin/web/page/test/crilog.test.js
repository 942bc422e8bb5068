import assert from "node:assert/strict";
import test from "node:test";

import { isPrinted, printed, PrintedDecoder } from "../crilog.js";
import { Lines, Text } from "../text.js";

const stamp = "2026-11-30T05:00:00.123456789Z";
const encoder = new TextEncoder();
const long = "x".repeat(3000);

test("of a log it is shown what the container printed, as kubectl does", () => {
  for (const [log, want] of [
    ["", ""],
    [`${stamp} stdout F one\n${stamp} stderr F two\n`, "one\ntwo\n"],
    [`${stamp} stdout P on\n${stamp} stdout P e\n${stamp} stdout F  two\n`, "one two\n"],
    [`${stamp} stdout F \n`, "\n"],
    [`${stamp} stdout P:x:y a\n${stamp} stdout F:z b\n`, "ab\n"],
    [`${stamp} stdout F cut`, "cut"],
    [`${stamp} stdout F ${long}\n${stamp} stdout P ${long}\n${stamp} stdout F end\n`, `${long}\n${long}end\n`],
    ["2026-11-30T07:00:00+02:00 stdout F x\n", "x\n"],
    [`${stamp} stdout F   a \0\u001b[31m \u00e9\u{1f600}\n`, "  a \0\u001b[31m \u00e9\u{1f600}\n"],
    [`x\n\n${stamp}\n${stamp} std F x\n${stamp} stdout F\nnow stdout F x\n${long}\n${stamp} stdout F y\n`, "y\n"],
    [`${stamp} std`, ""],
  ]) {
    const bytes = encoder.encode(log);
    for (const size of [1, 2, 7, 100, 4096, bytes.length + 1]) {
      const decoder = new PrintedDecoder();
      const got = [];
      for (let at = 0; at < bytes.length; at += size) got.push(...decoder.decode(bytes.subarray(at, at + size), { stream: at + size < bytes.length }));
      assert.equal(new TextDecoder().decode(new Uint8Array(got)), want, `in parts of ${size} bytes`);
    }
  }
  assert.ok(isPrinted(encoder.encode(`${stamp} stderr F x\n`)));
  for (const other of ["", "x", stamp, `${stamp} stdout F`, `${long} stdout F x`, `${stamp} out F x`]) assert.ok(!isPrinted(encoder.encode(other)));
});

test("a log is read from its beginning and from its end", async () => {
  const lines = Array.from({ length: 60_000 }, (_, i) => `line ${i}`);
  const file = encoder.encode(lines.map((line, i) => `${stamp} stdout P ${line}\n${stamp} stdout F  of ${i}\n`).join(""));
  const read = async ({ offset, limit }) => ({ data: file.subarray(offset, offset + limit) });
  const text = new Text(read, file.length, file.subarray(0, 1000), { encoding: printed });
  const shown = () => new TextDecoder().decode(text.bytes.subarray(0, text.length));
  assert.ok(shown().startsWith("line 0 of 0\nline 1 of 1\n"));
  while (await text.more());
  assert.ok(text.complete);
  const whole = shown();
  assert.ok(whole.endsWith("line 59999 of 59999\n"));
  const index = new Lines(2000);
  index.extend(text.bytes, text.length);
  assert.equal(index.lines, lines.length);
  text.reset();
  await text.end();
  assert.ok(whole.endsWith(shown()));
  const last = text.length;
  await text.earlier();
  assert.ok(text.length > last && whole.endsWith(shown()));
});
