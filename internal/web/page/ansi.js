// Text with the escape sequences of terminals, as logs have it. Colors and weights become classes of
// the style sheet; all other sequences are left out, and control characters are made visible.

import { pieces } from "./names.js";

// CSI sequences; strings such as titles and links, up to BEL or ST; and the short ones.
const sequence = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])/g;

const colors = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

// strip returns a text without such sequences.
export function strip(text) {
  return text.includes("\x1b") ? text.replace(sequence, "") : text;
}

// parse cuts a line into runs: a text, the classes it is shown with, and whether it is a control
// character that is written by its number.
export function parse(line) {
  if (line.endsWith("\r")) line = line.slice(0, -1);
  const runs = [];
  let style = {};
  let end = 0;
  const push = (text) => {
    if (text === "") return;
    const classes = classesOf(style);
    for (const [i, part] of text.split("\t").entries()) {
      if (i > 0) add(runs, "\t", classes, false);
      if (part !== "") for (const piece of pieces(part)) add(runs, piece.text, classes, piece.odd);
    }
  };
  if (line.includes("\x1b")) {
    for (const match of line.matchAll(sequence)) {
      push(line.slice(end, match.index));
      end = match.index + match[0].length;
      if (match[2] === "m") style = graphics(style, match[1]);
    }
  }
  push(line.slice(end));
  return runs;
}

function add(runs, text, classes, odd) {
  const last = runs.at(-1);
  if (last && !odd && !last.odd && last.classes === classes) last.text += text;
  else runs.push({ text, classes, odd });
}

// graphics applies the numbers of a sequence that sets colors and weights.
function graphics(style, numbers) {
  if (!/^[0-9;:]*$/.test(numbers)) return style;
  const next = { ...style };
  const codes = numbers.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    if (code === 0) for (const key of Object.keys(next)) delete next[key];
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) next.bold = next.faint = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 29) next.strike = false;
    else if (code >= 30 && code <= 37) next.color = colors[code - 30];
    else if (code >= 90 && code <= 97) next.color = colors[code - 90];
    else if (code === 39) delete next.color;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(i + 1));
      if (code === 38) next.color = color;
      i += used;
    }
  }
  return next;
}

// extended returns the nearest of the eight colors to one of 256 or of 16 million, and how many
// numbers it took. Backgrounds are not shown, so that all text can be read.
function extended([kind, a = 0, b = 0, c = 0]) {
  if (kind === 2) return [nearest(a, b, c), 4];
  if (kind !== 5) return [undefined, 1];
  if (a < 16) return [colors[a % 8], 2];
  if (a >= 232) return [a > 243 ? "white" : "black", 2];
  const level = (n) => (n === 0 ? 0 : 55 + 40 * n);
  const cube = a - 16;
  return [nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)), 2];
}

function nearest(red, green, blue) {
  const most = Math.max(red, green, blue);
  const bit = (value, n) => (most > 0 && value > most * 0.6 ? n : 0);
  return colors[most < 64 ? 0 : bit(red, 1) | bit(green, 2) | bit(blue, 4)];
}

function classesOf(style) {
  const classes = ["bold", "faint", "italic", "underline", "strike"].filter((name) => style[name]);
  // Black and white are the colors of text and page, which change with the theme.
  if (style.color && style.color !== "black" && style.color !== "white") classes.push(style.color);
  return classes.map((name) => `ansi-${name}`).join(" ");
}
