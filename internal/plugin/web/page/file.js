// A file of a volume: as text, as an image, or as hexadecimal numbers.

import { bytes } from "./api.js";
import { isPrinted, printed } from "./crilog.js";
import { button, el, writable } from "./dom.js";
import { behindHole, blank, encodingOf, step } from "./encoding.js";
import { download } from "./download.js";
import { logsName } from "./ending.js";
import { count, mode, moment, size } from "./format.js";
import { HexView } from "./hex.js";
import { imageType, ImageView } from "./image.js";
import { base, decode, nameOf, visible } from "./names.js";
import { format } from "./route.js";
import { TextView } from "./textview.js";

const views = { __proto__: null, text: TextView, image: ImageView, hex: HexView };
const titles = { text: "Text", image: "Image", hex: "Hex" };

const others = {
  __proto__: null,
  symlink: "a symbolic link. Katbox follows no links: what it leads to may be outside of the volume",
  fifo: "a named pipe, which holds no data", socket: "a socket, which holds no data",
  block: "a block device, which Katbox does not open", char: "a character device, which Katbox does not open",
  mount: "a mount point. What is below it was not in the volume",
};

// isLog reports whether a file is one that a program wrote line by line, by its name: train.log, log.txt,
// app.log.1, stderr, job.out.
function isLog(name) {
  return /(^|[._-])(logs?|stdout|stderr|console)([._-]|$)|\.(out|err)$/i.test(name);
}

export class FileView {
  #leaving = new AbortController();

  constructor(view, route, entry) {
    Object.assign(this, { view, route, entry, id: view.id, ref: route.ref });
    this.name = visible(decode(base(route.ref)));
    this.kinds = el("nav", { class: "kinds", "aria-label": "Shown as" });
    this.encoding = el("div", { class: "encoding" });
    this.status = el("p", { class: "status" }, "Loading…");
    this.tools = el("div", { class: "tools" });
    this.content = el("div", { class: "content" });
    this.root = el("section", { class: "file", "aria-label": "File" }, el("div", { class: "bar" }, this.kinds, this.encoding, this.status, this.tools), this.content);
  }

  async begin() {
    this.view.cameFrom = this.ref;
    if (this.view.app.moved) this.view.heading.focus({ preventScroll: true });
    if (this.entry.type !== "file") {
      this.#cannot();
      return;
    }
    try {
      const first = await this.read({ limit: step, signal: this.#leaving.signal });
      Object.assign(this, { size: first.size, first: first.data });
      const image = imageType(first.data);
      this.sample = await this.#sample(first.data);
      this.can = image ? ["image", "hex"] : this.sample.is ? ["text", "hex"] : ["hex", "text"];
      const volume = isLog(decode(base(this.ref))) ? await this.view.whose() : undefined;
      this.opensAtEnd = volume?.outcome === "Failed";
      this.isPrinted = volume?.volume === logsName && this.sample.encoding === "utf-8" && isPrinted(this.sample.bytes);
      if (this.isPrinted) this.sample.encoding = printed;
      this.#show();
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.status.textContent = "";
      this.failed(problem);
    }
  }

  // sample tells where the text of the file begins, what it is in, and whether it is one.
  async #sample(first) {
    const whole = first.length >= this.size;
    let found = { origin: blank(first), bytes: first.subarray(blank(first)) };
    if (!whole && found.bytes.length === 0) found = await behindHole((part) => this.read(part), first.length, this.size);
    const encoding = found ? encodingOf(found.origin < first.length ? first : found.bytes, found.origin + found.bytes.length >= this.size) : "";
    // A file that is no text can be shown as one from its beginning. So can one in UTF-16, where NUL bytes are none.
    if (!encoding || encoding.startsWith("utf-16")) found = { origin: 0, bytes: first };
    return { ...found, is: encoding !== "", encoding: encoding || "utf-8" };
  }

  // encode shows the text in another encoding.
  encode(encoding) {
    this.sample.encoding = encoding;
    this.#show();
    document.getElementById("encoding")?.focus();
  }

  // read reads a part of the file.
  read(part) {
    return bytes(this.id, { ref: this.ref, ...part, signal: part.signal ?? this.#leaving.signal });
  }

  // failed shows a problem.
  failed(problem) {
    this.view.trouble(problem, "log", () => {
      this.view.notices.replaceChildren();
      this.inner?.end();
      this.begin();
    });
  }

  #cannot() {
    const { type, target } = this.entry;
    this.status.textContent = "";
    this.content.replaceChildren(el("p", { class: "empty" }, nameOf(decode(base(this.ref))), ` is ${others[type] ?? "no regular file"}.`,
      type === "symlink" && [" It leads to ", nameOf(target ?? ""), "."]));
  }

  #show() {
    const kind = this.can.includes(this.route.view) ? this.route.view : this.can[0];
    const links = this.size === 0 ? [] : this.can.map((name) =>
      el("a", { href: format({ ...this.id, ref: this.ref, view: name === this.can[0] ? "" : name }), "aria-current": name === kind ? "true" : null }, titles[name]));
    this.kinds.replaceChildren(...links);
    this.encoding.replaceChildren();
    this.inner?.end();
    this.inner = null;
    const save = button("Download", () => download(this.id, this.ref, "download", this.view.notices), { icon: "download", asks: true, id: "download", "aria-label": "Download the file", title: "Download the file" });
    if (this.size === 0) {
      this.say("");
      this.tools.replaceChildren(save);
      this.content.replaceChildren(el("p", { class: "empty" }, "This file is empty."));
      return;
    }
    this.kind = kind;
    this.inner = new views[kind](this, this.route);
    if (this.inner.encoding) this.encoding.replaceChildren(this.inner.encoding);
    this.tools.replaceChildren(...this.inner.tools, save);
    this.content.replaceChildren(this.inner.root);
    this.inner.begin();
    // Arrow keys scroll at once.
    if (this.view.app.moved && !writable(document.activeElement)) this.inner.box?.focus({ preventScroll: true });
  }

  // say writes what is shown: a text, behind it the size, the time and the mode of the file.
  say(text) {
    const { entry } = this;
    const facts = [text, size(this.size), entry.mode && mode("file", entry.mode), this.#time()];
    this.status.textContent = facts.filter(Boolean).join(" · ");
    this.status.title = `${count(this.size)} bytes`;
  }

  #time() {
    const time = this.entry.time ?? Date.parse(this.entry.mtime);
    return Number.isNaN(time) ? "" : moment(time).slice(0, 16);
  }

  // update follows a route that leads to the same file.
  update(route) {
    const before = this.route;
    this.route = route;
    if (!this.can) return;
    if (before.view !== route.view) this.#show();
    else this.inner?.update?.(route);
  }

  end() {
    this.#leaving.abort();
    this.inner?.end();
  }
}
