// What a terminal makes of a text, as logs have it: colors and weights, which go on over ends of lines, and
// characters that were written over. Colors become classes of the style sheet; all other escape sequences
// are left out, and control characters are made visible.

import { pieces } from "./names.js";

// CSI sequences; strings such as titles and links, up to BEL or ST; and the short ones.
const sequence = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])/g;

// strip returns a text without such sequences.
export function strip(text) {
  return text.includes("\x1b") ? text.replace(sequence, "") : text;
}

// A style is a number, so that one for each row takes two bytes: the color of the text in bits 0 to 3, that of
// the background in bits 4 to 7, 0 for the page's own, and flags.
const colors = ["", "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray"];
const gray = colors.indexOf("gray");
const flags = { bold: 1 << 8, faint: 1 << 9, italic: 1 << 10, underline: 1 << 11, strike: 1 << 12 };
const inverse = 1 << 13;

// graphics returns the style behind a sequence that sets colors and weights; numbers is what stands between
// its beginning and its end.
export function graphics(style, numbers) {
  if (!/^[0-9;:]*$/.test(numbers)) return style;
  const codes = numbers.split(";");
  for (let i = 0; i < codes.length; i++) {
    const [code, ...parts] = codes[i].split(":").map(Number);
    if (code === 0) style = 0;
    else if (code === 1) style |= flags.bold;
    else if (code === 2) style |= flags.faint;
    else if (code === 3) style |= flags.italic;
    else if (code === 4) style = parts[0] === 0 ? style & ~flags.underline : style | flags.underline;
    else if (code === 7) style |= inverse;
    else if (code === 9) style |= flags.strike;
    else if (code === 22) style &= ~(flags.bold | flags.faint);
    else if (code === 23) style &= ~flags.italic;
    else if (code === 24) style &= ~flags.underline;
    else if (code === 27) style &= ~inverse;
    else if (code === 29) style &= ~flags.strike;
    else if (code === 38 || code === 48) {
      // 38;5;N and 38;2;R;G;B, or one number with colons, of which the second form has one more for a color space.
      const [color, used] = extended(parts.length > 4 ? [parts[0], ...parts.slice(-3)] : parts.length > 0 ? parts : codes.slice(i + 1, i + 5).map(Number));
      style = painted(style, code === 48, color);
      if (parts.length === 0) i += used;
    } else if (code === 39 || code === 49) style = painted(style, code === 49, 0);
    else if (code >= 30 && code <= 37 || code >= 40 && code <= 47) style = painted(style, code >= 40, code % 10 + 1);
    else if (code >= 90 && code <= 97 || code >= 100 && code <= 107) style = painted(style, code >= 100, bright(code % 10, code >= 100));
  }
  return style;
}

function painted(style, background, color) {
  return background ? style & ~0xf0 | color << 4 : style & ~0xf | color;
}

// Bright black is what programs write less important text with.
function bright(n, background) {
  return n === 0 && !background ? gray : n + 1;
}

// extended returns the nearest of the eight colors to one of 256 or of 16 million, and how many numbers it
// took.
function extended([kind, a = 0, b = 0, c = 0]) {
  if (kind === 2) return [nearest(a, b, c), 4];
  if (kind !== 5) return [0, 1];
  if (a < 16) return [a === 8 ? gray : a % 8 + 1, 2];
  if (a >= 232) return [a > 243 ? 8 : 1, 2];
  const level = (n) => (n === 0 ? 0 : 55 + 40 * n);
  const cube = a - 16;
  return [nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)), 2];
}

function nearest(red, green, blue) {
  const most = Math.max(red, green, blue);
  const bit = (value, n) => (most > 0 && value > most * 0.6 ? n : 0);
  return 1 + (most < 64 ? 0 : bit(red, 1) | bit(green, 2) | bit(blue, 4));
}

// classesOf returns the classes of a style. Black and white text has the color of the page's text, which changes
// with the theme; backgrounds are tints on which each color can be read.
function classesOf(style) {
  if (style === 0) return "";
  let text = style & 0xf;
  let background = style >> 4 & 0xf;
  const classes = Object.keys(flags).filter((name) => style & flags[name]);
  if (style & inverse) {
    if (text === 0 && background === 0) classes.push("inverse");
    [text, background] = [background, text];
  }
  if (text > 1 && text !== 8) classes.push(colors[text]);
  if (background > 0) classes.push(`on-${background === gray ? "black" : colors[background]}`);
  return classes.map((name) => `ansi-${name}`).join(" ");
}

// mostColumns bounds where a sequence may move to.
const mostColumns = 4000;

// Screen is one line of a terminal: cells that may be written over.
class Screen {
  cells = [];
  at = 0;

  put(text, classes, odd) {
    if (!odd && /^\p{M}/u.test(text) && this.at > 0 && this.cells[this.at - 1]) this.cells[this.at - 1].text += text;
    else if (this.at < mostColumns) this.cells[this.at++] = { text, classes, odd };
  }

  // move follows a sequence that moves or erases.
  move(letter, numbers) {
    const n = Number.parseInt(numbers, 10) || 0;
    if (letter === "G") this.at = Math.min(Math.max(n, 1), mostColumns) - 1;
    else if (letter === "C") this.at = Math.min(this.at + Math.max(n, 1), mostColumns);
    else if (letter === "D") this.at = Math.max(this.at - Math.max(n, 1), 0);
    else if (letter === "K" && n === 0) this.cells.length = Math.min(this.cells.length, this.at);
    else if (letter === "K" && n === 1) this.cells.fill(undefined, 0, this.at + 1);
    else if (letter === "K") this.cells.length = 0;
  }

  runs() {
    const runs = [];
    for (const cell of Array.from(this.cells)) add(runs, cell?.text ?? " ", cell?.classes ?? "", cell?.odd ?? false);
    return runs;
  }
}

// parse cuts a row into runs: a text, the classes it is shown with, and whether it is a control character
// that is written by its number. style is that at the beginning of the row, before the text of its line that
// was written over.
export function parse(row, style = 0, before = "") {
  if (row.endsWith("\r")) row = row.slice(0, -1);
  if (before === "" && !/[\r\b]|\x1b\[[0-9;]*[GCDK]/.test(row)) {
    const runs = [];
    written(row, style, (text, classes, odd) => add(runs, text, classes, odd));
    return runs;
  }
  const screen = new Screen();
  const put = (text, classes, odd) => {
    if (odd) {
      screen.put(text, classes, true);
      return;
    }
    for (const c of text) {
      if (c !== "\t") screen.put(c, classes, false);
      else do screen.put(" ", classes, false); while (screen.at % 8 > 0 && screen.at < mostColumns);
    }
  };
  for (const [text, began] of [[before, 0], [row, style]]) {
    screen.at = 0;
    let current = began;
    // A carriage return goes to the beginning, a backspace one back.
    for (const part of text.split(/([\r\b])/)) {
      if (part === "\r") screen.at = 0;
      else if (part === "\b") screen.at = Math.max(0, screen.at - 1);
      else current = written(part, current, put, (letter, numbers) => screen.move(letter, numbers));
    }
  }
  return screen.runs();
}

// written gives put the pieces of a text, and move the sequences that are none of style. It returns the style
// at its end.
function written(text, style, put, move = () => {}) {
  let end = 0;
  let classes = classesOf(style);
  const push = (part) => {
    for (const [i, piece] of part.split("\t").entries()) {
      if (i > 0) put("\t", classes, false);
      if (piece !== "") for (const { text: shown, odd } of pieces(piece)) put(shown, classes, odd);
    }
  };
  if (text.includes("\x1b")) {
    for (const match of text.matchAll(sequence)) {
      if (match.index > end) push(text.slice(end, match.index));
      end = match.index + match[0].length;
      if (match[2] === "m") {
        style = graphics(style, match[1]);
        classes = classesOf(style);
      } else if (match[2]) move(match[2], match[1]);
    }
  }
  if (end < text.length) push(text.slice(end));
  return style;
}

function add(runs, text, classes, odd) {
  const last = runs.at(-1);
  if (last && !odd && !last.odd && last.classes === classes) last.text += text;
  else runs.push({ text, classes, odd });
}
