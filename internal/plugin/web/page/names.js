// Names and paths that pods chose, and how they are shown. A ref is a path as requests take it:
// percent-encoded bytes.

import { el } from "./dom.js";

// Characters that show nothing, or that hide or reorder others: controls, marks of direction, joiners
// and other formatting, separators of lines, private and unassigned characters, lone surrogates.
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\u115f\u1160\u3164\uffa0]/u;
const hiddenRun = new RegExp(hidden.source, "gu");

const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

// escape writes one character by its number.
function escape(character) {
  if (short[character]) return short[character];
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\u{${code.toString(16)}}`;
}

// visible returns a text in which such characters are written by their numbers.
export function visible(text) {
  return hidden.test(text) ? text.replace(hiddenRun, escape) : text;
}

// In names also spaces at the ends, and all other blanks.
const hiddenInName = new RegExp(`${hidden.source}|(?! )\\p{Zs}|^ +| +$`, "gu");

// namePieces is pieces for a name, of which every character is to be seen.
export function namePieces(name) {
  return pieces(name, hiddenInName);
}

// pieces cuts a text: those with odd are characters that are written by their numbers.
export function pieces(text, what = hiddenRun) {
  const cut = [];
  let end = 0;
  for (const match of text.matchAll(what)) {
    if (match.index > end) cut.push({ text: text.slice(end, match.index), odd: false });
    const before = cut.at(-1);
    const written = [...match[0]].map(escape).join("");
    if (before?.odd) before.text += written;
    else cut.push({ text: written, odd: true });
    end = match.index + match[0].length;
  }
  if (end < text.length || cut.length === 0) cut.push({ text: text.slice(end), odd: false });
  return cut;
}

// encode returns a name as an element of a ref.
export function encode(name) {
  return encodeURIComponent(name.toWellFormed()).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

// decode returns what a ref shows people: bytes that are not UTF-8 are replaced.
export function decode(ref) {
  const bytes = [];
  const raw = new TextEncoder().encode(ref);
  for (let i = 0; i < raw.length; i++) {
    const pair = raw[i] === 0x25 ? String.fromCharCode(raw[i + 1], raw[i + 2]) : "";
    if (/^[0-9a-f]{2}$/i.test(pair)) {
      bytes.push(parseInt(pair, 16));
      i += 2;
    } else {
      bytes.push(raw[i]);
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

// base is the last element of a ref, and parent what is before it: "" for the top of the volume.
export function base(ref) {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

export function parent(ref) {
  return ref.slice(0, Math.max(0, ref.lastIndexOf("/")));
}

// ancestors returns the refs on the way from the top to a ref, which is the last of them.
export function ancestors(ref) {
  const elements = ref === "" ? [] : ref.split("/");
  return elements.map((_, i) => elements.slice(0, i + 1).join("/"));
}

// nameOf shows a name that a pod chose: apart from the direction of the text around it, with the
// characters that hide something made visible.
export function nameOf(name) {
  return el("bdi", { class: "name" }, namePieces(name).map(({ text, odd }) => (odd ? el("span", { class: "odd" }, text) : text)));
}

// tail is how many characters of a name are shown whatever room there is.
const tail = 8;

// cut shows a name in one line. Where there is no room its middle goes: pods and nodes differ at the end.
export function cut(name) {
  const text = [...visible(name)];
  if (text.length < 2 * tail) return text.join("");
  const end = text.splice(-tail);
  return [el("span", { class: "head-of" }, text.join("")), el("span", { class: "tail-of" }, end.join(""))];
}
