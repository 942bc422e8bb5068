import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import * as ansi from "../ansi.js";
import { commandFor } from "../command.js";
import { lower, marked, places } from "../find.js";
import * as format from "../format.js";
import * as hex from "../hex.js";
import { keptOf, whyGone } from "../facts.js";
import { matching, ordered, turned } from "../grid.js";
import * as names from "../names.js";
import { explain, Problem, problemOf } from "../problem.js";
import * as route from "../route.js";

// What the modules ask of a browser when they are loaded.
globalThis.location = { hash: "" };
globalThis.localStorage = { getItem: () => null };
const { compact, directoriesFirst, refOf } = await import("../directory.js");
const { imageSize, imageType } = await import("../image.js");
const { groupsOf, missingNodes, otherWarnings } = await import("../volumestore.js");

test("sizes are written as Katbox's other programs write them", () => {
  for (const [bytes, text] of [
    [0, "0 B"], [1023, "1023 B"], [1024, "1.0 KiB"], [10188, "9.9 KiB"], [10189, "10 KiB"], [980 * 2 ** 20, "980 MiB"],
    [1023.6 * 1024, "1.0 MiB"], [1.2 * 2 ** 30, "1.2 GiB"], [2 ** 60, "1.0 EiB"], [undefined, "–"], [null, "–"],
  ]) assert.equal(format.size(bytes), text);
});

test("times", () => {
  const hour = 3600_000;
  for (const [milliseconds, text] of [
    [-5, "0s"], [119_999, "119s"], [120_000, "2m"], [2 * hour - 1, "119m"], [2 * hour, "2h"], [2 * hour + 59_999, "2h"], [48 * hour - 1, "47h59m"], [48 * hour, "2d"],
    [71 * hour, "2d23h"], [240 * hour - 1, "9d23h"], [250 * hour, "10d"],
  ]) assert.equal(format.span(milliseconds), text);
  assert.equal(format.ago(0, 3 * hour), "3h ago");
  assert.equal(format.ago(NaN, 0), "–");
  assert.equal(format.left(9 * hour, 0, false), "9h");
  assert.equal(format.left(9 * hour, 0, true), "9h or less");
  assert.equal(format.left(9 * hour, 9 * hour, true), "expires now");
  assert.equal(format.left(NaN, 0, false), "–");
  assert.equal(format.share(0, 12, 3), 0.75);
  assert.equal(format.share(0, 12, 13), 0);
  assert.equal(format.share(5, 5, 5), 0);
  assert.match(format.moment(0), /^19(69|70)-\d\d-\d\d \d\d:\d\d:00$/);
});

test("counts and modes", () => {
  assert.equal(format.count(1234567), "1,234,567");
  assert.equal(format.count(100), "100");
  assert.equal(format.counted(1, "entry", "entries"), "1 entry");
  assert.equal(format.counted(2000, "file"), "2,000 files");
  for (const [type, octal, text] of [
    ["file", "0640", "-rw-r-----"], ["directory", "1777", "drwxrwxrwt"], ["file", "4711", "-rws--x--x"], ["file", "6644", "-rwSr-Sr--"],
    ["directory", "1770", "drwxrwx--T"], ["symlink", "0777", "lrwxrwxrwx"], ["mount", undefined, ""],
  ]) assert.equal(format.mode(type, octal), text);
});

test("what hides or reorders characters is made visible", () => {
  for (const [name, text] of [
    ["log.txt", "log.txt"], ["a b", "a b"], ["new\nline", "new\\nline"], ["\x1b[31m", "\\x1b[31m"], ["x\u202etxt.exe", "x\\u202etxt.exe"],
    ["\u2066a\u2069", "\\u2066a\\u2069"], ["zero\u200bwidth", "zero\\u200bwidth"], ["\u{e0041}", "\\u{e0041}"], ["\x7f\x85", "\\x7f\\x85"],
    ["\u2028", "\\u2028"], ["שלום", "שלום"], ["🐈", "🐈"], ["\ufffd", "\ufffd"], ["", ""], ["\u3164", "\\u3164"],
  ]) {
    assert.equal(names.visible(name), text);
    assert.equal(names.pieces(name).map((piece) => piece.text).join(""), text);
  }
  assert.deepEqual(names.namePieces(" a b\u00a0c ").map((piece) => piece.text), ["\\x20", "a b", "\\xa0", "c", "\\x20"]);
  assert.deepEqual(names.namePieces("  "), [{ text: "\\x20\\x20", odd: true }]);
  assert.deepEqual(names.pieces("a\n\tb"), [{ text: "a", odd: false }, { text: "\\n\\t", odd: true }, { text: "b", odd: false }]);
});

test("refs", () => {
  assert.equal(names.encode("a b%?#'()*!~é"), "a%20b%25%3F%23%27%28%29%2A%21~%C3%A9");
  assert.equal(names.decode("out/a%FFb%20c%C3%A9%4"), "out/a\ufffdb cé%4");
  assert.equal(names.base("a/b/c"), "c");
  assert.equal(names.base("c"), "c");
  assert.equal(names.parent("a/b/c"), "a/b");
  assert.equal(names.parent("c"), "");
  assert.deepEqual(names.ancestors("a/b%2Fc/d"), ["a", "a/b%2Fc", "a/b%2Fc/d"]);
  assert.deepEqual(names.ancestors(""), []);
});

test("an entry keeps its ref only if it does not follow from its name", () => {
  const plain = compact({ name: "a b", ref: "out/a%20b", type: "file", size: 1, mtime: "2026-11-22T03:00:00Z" }, "out");
  assert.equal(plain.ref, undefined);
  assert.equal(refOf(plain, "out"), "out/a%20b");
  const odd = compact({ name: "a\ufffd", ref: "a%FF", type: "file", size: 1 }, "");
  assert.equal(refOf(odd, ""), "a%FF");
  assert.ok(Number.isNaN(odd.time));
  const mixed = [{ n: 1 }, { n: 2, type: "directory" }, { n: 3 }, { n: 4, type: "directory" }];
  assert.deepEqual(directoriesFirst(mixed).map((e) => e.n), [2, 4, 1, 3]);
});

test("routes", () => {
  const whole = { namespace: "ci", name: "p.q3fd7k2m9c4a", ref: "out/a%FFb", lines: { from: 10, to: 20 }, q: "", sort: "", group: "", view: "text", of: "", files: "", flags: "" };
  assert.equal(route.format(whole), "#/ci/p.q3fd7k2m9c4a/out/a%FFb?view=text&line=10-20");
  assert.deepEqual(route.parse(route.format(whole)), whole);
  assert.deepEqual(route.parse("#/*?q=a+b%2Fc&sort=-size"), { namespace: "*", name: "", ref: "", lines: null, q: "a b/c", sort: "-size", group: "", view: "", of: "", files: "", flags: "" });
  assert.equal(route.parse("#/ci?group=owner").group, route.byOwner);
  assert.equal(route.format({ namespace: "ci", q: "x", group: "owner" }), "#/ci?q=x&group=owner");
  assert.equal(route.format(route.parse("#/*?q=a+b%2Fc&sort=-size")), "#/*?q=a+b%2Fc&sort=-size");
  for (const nothing of ["", "#", "#/"]) assert.equal(route.parse(nothing).namespace, "");
  assert.equal(route.parse("#/ci/name//a/").ref, "a");
  assert.equal(route.parse("#/%zz").namespace, "%zz");
  for (const [text, lines] of [
    ["10", { from: 10, to: 10 }], ["20-10", { from: 10, to: 20 }], ["-5", { from: -5, to: -5 }], ["-20--10", { from: -20, to: -10 }],
    ["0", null], ["-5-5", null], ["x", null], ["1-", null], [null, null], ["1e9", null],
  ]) assert.deepEqual(route.parseLines(text), lines);
});

test("selection and order", () => {
  const items = [{ n: "b", s: 2 }, { n: "a", s: undefined }, { n: "c", s: 9 }, { n: "d", s: 2 }];
  const values = { n: (i) => i.n, s: (i) => i.s };
  const sorted = (order) => ordered(items.slice(), order, values).map((i) => i.n).join("");
  assert.equal(sorted(""), "bacd");
  assert.equal(sorted("n"), "abcd");
  assert.equal(sorted("-n"), "dcba");
  assert.equal(sorted("s"), "bdca");
  assert.equal(sorted("-s"), "cbda");
  assert.equal(sorted("other"), "bacd");
  assert.deepEqual(matching(["nightly worker-7", "nightly worker-8"], " NIGHT  -7 ", (t) => t), ["nightly worker-7"]);
  assert.equal(matching(items, "  ", () => "").length, 4);
  assert.deepEqual([turned("", "s", true), turned("-s", "s", true), turned("s", "s", true)], ["-s", "s", ""]);
  assert.deepEqual([turned("-s", "n", false), turned("n", "n", false), turned("-n", "n", false)], ["n", "-n", ""]);
});

test("colors become classes, and other sequences go", () => {
  const plain = (text) => ansi.parse(text).map((run) => run.text).join("");
  assert.deepEqual(ansi.parse("\x1b[1;31mERROR\x1b[0m x"), [
    { text: "ERROR", classes: "ansi-bold ansi-red", odd: false }, { text: " x", classes: "", odd: false },
  ]);
  assert.equal(plain("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b[1;1H\x1b[?25lc\x1b(Bd\r"), "abcd");
  assert.equal(plain("a\tb\x00\x1b"), "a\tb\\x00\\x1b");
  assert.equal(plain("if \u202e x"), "if \\u202e x");
  for (const [sequence, color] of [
    ["38;5;9", "red"], ["38;5;196", "red"], ["38;2;0;200;10", "green"], ["38;5;46", "green"], ["93", "yellow"], ["38;5;21", "blue"],
  ]) assert.equal(ansi.parse(`\x1b[${sequence}mx`)[0].classes, `ansi-${color}`);
  for (const sequence of ["39", "37", "30", "?25h", "38;5;244", "38", "4:0"]) assert.equal(ansi.parse(`\x1b[${sequence}mx`)[0].classes, "");
  assert.equal(ansi.parse("\x1b[1;4m\x1b[22;24mx")[0].classes, "");
  assert.equal(ansi.strip("\x1b[31mred\x1b[0m"), "red");
});

test("backgrounds are shown, and each form of a color", () => {
  for (const [sequence, classes] of [
    ["41", "on-red"], ["37;44", "on-blue"], ["30;102", "on-green"], ["100", "on-black"], ["47", "on-white"], ["48;5;9", "on-red"], ["48;2;0;0;200", "on-blue"],
    ["48:2::0:0:200", "on-blue"], ["48:2:0:0:200;1", "bold on-blue"], ["38:5:9;4:3", "underline red"], ["90", "gray"], ["31;42;39;49", ""],
    ["7", "inverse"], ["31;7", "on-red"], ["42;7", "green"], ["31;44;7", "blue on-red"], ["7;27", ""],
  ]) {
    const wanted = classes.split(" ").filter(Boolean).map((name) => `ansi-${name}`).join(" ");
    assert.equal(ansi.parse(`\x1b[${sequence}mx`)[0].classes, wanted, sequence);
  }
  assert.deepEqual(ansi.parse("x\x1b[0my", ansi.graphics(0, "31")).map((run) => run.classes), ["ansi-red", ""]);
});

test("a row is what a terminal shows", () => {
  for (const [row, text] of [
    ["10%\r20%\r100%", "100%"], ["abcdef\rxyz", "xyzdef"], ["long text\r\x1b[Kshort", "short"], ["a\x1b[2K\x1b[Gb", "b"], ["kept\r", "kept"],
    ["|\b/\b-", "-"], ["N\bNA\bA", "NA"], ["\x1b[31mabc\rx", "xbc"], ["ab\x1b[3Cc", "ab   c"], ["\x1b[999999999Cx", ""],
    ["e\u0301\rx", "x"], ["a\tb\rx", "x       b"], ["abc\x1b[2Dx\x1b[1Ky", "  y"], ["\x00\ra", "a"],
  ]) assert.equal(ansi.parse(row).map((run) => run.text).join(""), text);
  assert.deepEqual(ansi.parse("\x1b[31mab\rX").map(({ text, classes }) => [text, classes]), [["Xb", "ansi-red"]]);
  assert.equal(ansi.parse("xyz", 0, "abcdef\r").map((run) => run.text).join(""), "xyzdef");
});

// contrast is that of two colors, as WCAG computes it.
function contrast(a, b) {
  const luminance = (color) => color.match(/[0-9a-f]{2}/g).map((pair) => parseInt(pair, 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

test("each color of a text can be read on each background, in both themes", () => {
  const css = readFileSync(new URL("../style.css", import.meta.url), "utf8");
  for (const theme of [1, 2]) {
    const variable = (name) => new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css)[theme];
    const value = (name, property) => {
      const rule = new RegExp(`\\.ansi-${name} {[^}]*\\b${property}: (?:light-dark\\((#\\w+), (#\\w+)\\)|var\\(--(\\w+)\\))`).exec(css);
      return rule[3] ? variable(rule[3]) : rule[theme];
    };
    const texts = ["red", "green", "yellow", "blue", "magenta", "cyan", "gray", "faint"].map((name) => [name, value(name, "color")]);
    const grounds = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"].map((name) => [name, value(`on-${name}`, "background")]);
    for (const [ground, background] of [...grounds, ["page", variable("page")], ["picked", variable("picked")], ["mark", variable("mark")]]) {
      for (const [text, color] of [...texts, ["text", variable("text")]]) {
        if (ground === "mark" && text !== "text") continue; // a hit has the color of the text
        assert.ok(contrast(color, background) >= 4.5, `${text} on ${ground}, theme ${theme}: ${contrast(color, background).toFixed(2)}`);
      }
    }
  }
});

test("hits are marked across runs", () => {
  assert.equal(lower("İA"), "İa");
  assert.deepEqual(places("aXbxa", "x"), [1, 3]);
  assert.deepEqual(places("err", "error", "or and more"), [0]);
  assert.deepEqual(places("aaa", "aa"), [0]);
  const runs = [{ text: "an er", classes: "", odd: false }, { text: "ror er", classes: "r", odd: false }];
  assert.deepEqual(marked(runs, [3], 5).map(({ text, hit }) => [text, hit]), [["an ", -1], ["er", 0], ["ror", 0], [" er", -1]]);
  assert.deepEqual(marked(runs, [], 5).map((run) => run.text), ["an er", "ror er"]);
  assert.deepEqual(marked([{ text: "xx" }], [0, 1], 1).map(({ hit }) => hit), [0, 1]);
});

test("hexadecimal numbers", () => {
  const bytes = new Uint8Array([0, 0x41, 0xff, 0x7e, 0x7f]);
  assert.equal(hex.offset(0x1234), "00001234");
  assert.equal(hex.offset(0x123456789a), "123456789a");
  assert.equal(hex.numbers(bytes, 8), "00 41 ff 7e 7f         ");
  assert.equal(hex.numbers(new Uint8Array(16), 16), `${"00 ".repeat(8)} ${"00 ".repeat(8).trim()}`);
  assert.equal(hex.characters(bytes), ".A.~.");
  for (const [text, at] of [["4096", 4096], ["0x10", 16], ["50%", 5000], ["1,000", 1000], ["99999999", 9999], ["x", null], ["", null]]) {
    assert.equal(hex.parseOffset(text, 10000), at);
  }
});

test("images, and how large they are", () => {
  const raw = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
  const image = (text) => imageType(raw(text));
  assert.equal(image("\x89PNG\r\n\x1a\nxx"), "PNG");
  assert.equal(image("\xff\xd8\xff\xe0"), "JPEG");
  assert.equal(image("GIF89a"), "GIF");
  assert.equal(image("RIFF1234WEBPVP8 "), "WebP");
  for (const other of ["<svg xmlns=", "%PDF-1.7", "<html>", "", "\x89PNG"]) assert.equal(image(other), "");
  for (const [text, size] of [
    ["\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\x01\x00\x68", [640, 65640]],
    ["GIF89a\x80\x02\x68\x01", [640, 360]],
    ["\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\x01\x68\x02\x80", [640, 360]],
    ["RIFF1234WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\x67\x01\0", [640, 360]],
    ["RIFF1234WEBPVP8 1234abc\x9d\x01\x2a\x80\x02\x68\x01", [640, 360]],
    ["RIFF1234WEBPVP8L1234\x2f\x7f\xc2\x59\x00", [640, 360]],
    ["\x89PNG\r\n\x1a\n\0\0", null], ["\xff\xd8\xff\xe0\0\x04ab", null], ["text", null],
  ]) assert.deepEqual(imageSize(raw(text)), size, text);
});

test("problems say which right is missing, and what to do", () => {
  const header = new Headers({ "Retry-After": "7" });
  const status = JSON.stringify({ kind: "Status", reason: "Forbidden", message: "no", details: { causes: [{ type: "Symlink" }] } });
  const forbidden = problemOf(403, header, status);
  assert.deepEqual([forbidden.status, forbidden.reason, forbidden.message, forbidden.cause, forbidden.retryAfter], [403, "Forbidden", "no", "Symlink", 7]);
  const read = explain(forbidden, "files", "ci");
  assert.match(read.text, /get retainedvolumes\/files .*namespace ci.* edit and admin/);
  assert.match(read.advice, /role edit/);
  assert.match(explain(forbidden, "list", "ci").text, /list retainedvolumes .*roles view, edit and admin/);
  assert.match(explain(forbidden, "list", "*").advice, /one namespace/);
  assert.match(explain(problemOf(403, new Headers(), "This is the page"), "list", "ci").text, /This is the page/);
  assert.match(explain(new Problem({ status: 0 }), "list", "ci").advice, /kubectl katbox ui/);
  assert.match(explain(new Problem({ status: 410, reason: "Expired" }), "list", "ci").advice, /Refresh/);
  assert.match(explain(new Problem({ status: 410, reason: "Expired" }), "log", "ci").title, /gone/);
  assert.match(explain(new Problem({ status: 404, message: "there is no such retained volume" }), "log", "ci").title, /volume is gone/);
  assert.match(explain(new Problem({ status: 404, message: "there is no such volume on this node" }), "files", "ci").title, /volume is gone/);
  assert.match(explain(new Problem({ status: 404, message: "no such file" }), "log", "ci").title, /file or directory/);
  assert.match(explain(new Problem({ status: 429, retryAfter: 1 }), "list", "ci").advice, /in 1 s/);
  for (const code of [400, 401, 409, 410, 416, 429, 500, 502, 503, 504]) {
    assert.ok(explain(new Problem({ status: code, message: "m" }), "list", "ci").title);
  }
  assert.match(explain(new TypeError("x"), "list", "ci").text, /x/);
});

test("what became of a volume is said in the words of the plugin", () => {
  for (const [gone, text] of [
    [{ reason: "expired" }, "expired"], [{ reason: "floor", by: "", why: "" }, "floor: the disk was nearly full"],
    [{ reason: "purged", by: "jane", why: "leaked" }, "purged by jane: leaked"], [{ reason: "purged", by: "x\u202e", why: "\x1b[31m" }, "purged by x\\u202e: \\x1b[31m"],
    [{ reason: "constructor" }, "constructor"],
  ]) assert.equal(whyGone(gone), text);
  assert.equal(keptOf({ kept: "1h", promised: "12h" }), "1h of 12h");
  assert.equal(keptOf({ kept: "", promised: "" }), "– of –");
  // What was kept longer than it was to be was not kept "of" that.
  for (const [kept, promised, text] of [
    ["1d16h", "12h", "1d16h, promised 12h"], ["12h", "12h", "12h of 12h"], ["12h0s", "12h", "12h0s of 12h"], ["90m", "1h", "90m, promised 1h"], ["2d", "3d", "2d of 3d"],
    ["1d", "forever", "1d of forever"], ["1w", "6d", "1w, promised 6d"], ["1y", "364d", "1y, promised 364d"], ["59m59s", "1h", "59m59s of 1h"],
  ]) assert.equal(keptOf({ kept, promised }), text);
});

test("what a list lacks is said once", () => {
  const fleet = {
    nodes: 5000, missing: [{ node: "n7", since: "2026-11-22T03:00:00Z", reason: "NotConnected" }, { node: "n8", reason: "Odd" }], missingMore: 3,
  };
  const said = missingNodes(fleet, () => "03:00");
  assert.match(said.title, /^5 of 5,000 nodes/);
  assert.match(said.text, /^n7 \(not connected since 03:00\), n8 \(Odd\), 3 more\./);
  assert.match(missingNodes({ nodes: 3, missing: [{ node: "a", reason: "NoAnswer" }] }, String).title, /^1 of 3 nodes did not answer; its/);
  const archive = { node: "the archive", reason: "NotListed" };
  assert.match(missingNodes({ nodes: 3, missing: [archive] }, String).title, /^the archive did not answer; its/);
  assert.match(missingNodes({ nodes: 3, missing: [archive, { node: "a", reason: "NoAnswer" }] }, String).title, /^1 of 3 nodes and the archive did not/);
  assert.equal(missingNodes({ nodes: 3 }, String), null);
  assert.equal(missingNodes(undefined, String), null);
  assert.deepEqual(otherWarnings(["katbox: 5 of 9 nodes did not answer (n7)", "katbox: other"], fleet), ["other"]);
  assert.deepEqual(otherWarnings(["katbox: 5 of 9 nodes did not answer (n7)"], null), ["5 of 9 nodes did not answer (n7)"]);
});

test("volumes of one owner are one group, whose failures count", () => {
  const volume = (owner, pod, outcome, bytes, retained, expires, node = "n1") => ({ namespace: "ci", owner, pod, name: `${pod}.x`, outcome, bytes, retained, expires, node });
  const groups = groupsOf([
    volume("job/a", "a-1", "Succeeded", 5, 30, 90), volume("job/b", "b-1", "Succeeded", undefined, NaN, NaN), volume("job/a", "a-2", "Failed", 7, 20, 60, "n2"),
    volume("", "alone", "", 1, 10, 50), volume("", "alone", "", 2, 9, 40), { ...volume("job/a", "a-9", "Stopped", 1, 1, 1), namespace: "etl" },
  ]);
  assert.deepEqual(groups.map((g) => [g.namespace, g.owner, g.members.length]), [["ci", "job/a", 2], ["ci", "job/b", 1], ["ci", "alone", 2], ["etl", "job/a", 1]]);
  const [a, b] = groups;
  assert.deepEqual([a.outcome, a.bytes, a.retained, a.left, a.nodes.size], ["Failed", 12, 30, 60, 2]);
  assert.deepEqual([...a.outcomes], [["Succeeded", 1], ["Failed", 1]]);
  assert.equal(b.bytes, undefined);
  assert.ok(Number.isNaN(b.left));
});

test("commands for what is shown mean nothing else to a shell", () => {
  const id = { namespace: "ci", name: "nightly-x7k2p.q3fd7k2m9c4a" };
  for (const [place, command] of [
    [{ namespace: "ci" }, "kubectl katbox list -n ci"],
    [{ namespace: "*" }, "kubectl katbox list -A"],
    [{ namespace: "ci", gone: true }, "kubectl katbox list --gone -n ci"],
    [id, `kubectl katbox ls -n ci ${id.name}:`],
    [{ ...id, ref: "out" }, `kubectl katbox ls -n ci ${id.name}:out`],
    [{ ...id, ref: "out/log.txt", file: true }, `kubectl katbox cat -n ci ${id.name}:out/log.txt`],
    [{ ...id, ref: "a%0Ab/%3Brm%20-rf", file: true }, `kubectl katbox cat -n ci ${id.name}::a%0Ab/%3Brm%20-rf`],
    // The address bar takes what no list has sent.
    [{ ...id, ref: "$(x)\n;`'\u202e\x1b" }, `kubectl katbox ls -n ci ${id.name}::%24%28x%29%0A%3B%60%27%E2%80%AE%1B`],
    [{ namespace: "a'; rm -rf /" }, "kubectl katbox list -n 'a'\\''; rm -rf /'"],
  ]) assert.equal(commandFor(place), command);
  assert.equal(commandFor(id, ["--context=the one"]), `kubectl katbox ls '--context=the one' -n ci ${id.name}:`);
});
