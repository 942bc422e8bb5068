// One volume: whose it was, what can be done with it, its path, and below that a directory or a file.

import { entry, list, volume as getVolume } from "./api.js";
import { copyButton } from "./command.js";
import { askToPin, askToRelease, askToRemove, takeBack } from "./decide.js";
import { DirectoryView } from "./directory.js";
import { button, el, writable } from "./dom.js";
import { download } from "./download.js";
import { endingOf, logsName, readEnding } from "./ending.js";
import { holdInFull, outcomeOf, timeLeft } from "./facts.js";
import { FileView } from "./file.js";
import { count, moment, size, span } from "./format.js";
import { ancestors, base, cut, decode, namePieces, nameOf, parent, visible } from "./names.js";
import { trouble } from "./problem.js";
import { format, parse, sameFile } from "./route.js";
import { compact } from "./volumestore.js";

// A path of more steps has its middle left out: so many are shown at its beginning and at its end.
const firstSteps = 2;
const lastSteps = 3;
// mostOfPod bounds how many volumes of a pod are listed beside the one that is shown.
const mostOfPod = 50;

export class VolumeView {
  #leaving = new AbortController();

  constructor(app, route) {
    this.app = app;
    this.id = { namespace: route.namespace, name: route.name };
    this.heading = el("h1", { tabindex: -1 }, visible(route.name));
    this.outcome = el("div", { class: "how" });
    this.facts = el("dl", { class: "facts" });
    this.steps = el("ol");
    this.path = el("nav", { class: "path", "aria-label": "Path" }, this.steps);
    this.tools = el("div", { class: "tools" });
    this.ending = el("section", { class: "ending", tabindex: 0, "aria-label": "How the pod ended", hidden: true });
    this.notices = el("div", { class: "notices" });
    this.content = el("div", { class: "content" });
    const copy = copyButton(app, () => ({ ...this.id, ref: this.route.ref, file: this.inner instanceof FileView }), { class: "quiet slim", id: "copy-command" });
    this.top = el("div", { class: "bar about" }, el("div", { class: "who" }, el("div", { class: "headline" }, this.outcome, this.heading), this.facts), this.tools);
    this.root = el("div", { class: "view", on: { keydown: (event) => this.#key(event) } }, el("div", { class: "trail" }, this.path, copy), this.top, this.ending, this.notices, this.content);
  }

  // begin is called once the view is in the document.
  begin(route) {
    this.timer = setInterval(() => this.#drawFacts(), 30_000);
    const kept = this.app.store?.volumes.find((v) => v.namespace === this.id.namespace && v.name === this.id.name);
    if (kept) this.#found(kept);
    this.loading = this.#load();
    this.update(route);
  }

  // whose returns what is known of the volume, once it is; undefined if that cannot be found out.
  async whose() {
    if (!this.volume) await this.loading;
    return this.volume;
  }

  async #load() {
    try {
      const found = await getVolume(this.id, this.#leaving.signal);
      this.#found(compact(found));
      this.app.reached(this.id.namespace);
      if (this.volume.outcome === "Failed" && found.spec.podUID) this.log ??= this.#drawEnding(found.spec);
    } catch (problem) {
      if (problem.name !== "AbortError") this.trouble(problem, "get");
    }
  }

  #found(volume) {
    this.volume = volume;
    this.app.store?.changed(volume);
    this.#drawFacts();
    this.#drawPath();
    this.#drawTools();
  }

  // drawEnding shows how the pod ended, and what else is kept of it, if its logs are. It returns the ref of the log that says
  // why, if this is the volume with the logs.
  async #drawEnding(pod) {
    const others = this.#others(pod);
    const logs = this.isLogs ? this.id : (await others).find((v) => v.volume === logsName);
    if (!logs) return "";
    try {
      const { end, log } = await readEnding(logs, this.#leaving.signal);
      const draw = (volumes) => {
        this.ending.replaceChildren(...endingOf(end, volumes));
        this.#hideEnding();
      };
      draw([]);
      others.then(draw);
      return log;
    } catch (problem) {
      this.#unlessRefused(problem);
      return "";
    }
  }

  // others returns the other volumes of the pod.
  async #others(pod) {
    try {
      const { page } = await list(this.id.namespace, { pod, limit: mostOfPod, signal: this.#leaving.signal });
      return page.items.map(compact).filter(({ name }) => name !== this.id.name);
    } catch (problem) {
      this.#unlessRefused(problem);
      return [];
    }
  }

  // unlessRefused shows a problem. Who may not list volumes, or read their files, sees what else there is as it is.
  #unlessRefused(problem) {
    if (problem.name !== "AbortError" && problem.status !== 403) this.trouble(problem, "files");
  }

  // hideEnding hides it beside single files, except those of the logs.
  #hideEnding() {
    this.ending.hidden = this.ending.childElementCount === 0 || this.route.ref !== "" && !this.isLogs;
  }

  get isLogs() {
    return this.volume?.volume === logsName;
  }

  // What can be done. How long a volume of a deleted claim is kept is decided elsewhere.
  #drawTools() {
    const v = this.volume;
    const drawn = JSON.stringify([v.bytes, v.hold, v.pool]);
    if (drawn === this.drawn) return; // the focus stays
    this.drawn = drawn;
    const decided = (said) => {
      this.app.toast(said);
      this.#load();
    };
    const all = button(v.bytes === undefined ? "Download all" : `Download all (${size(v.bytes)})`, () => download(this.id, "", "archive", this.notices),
      { icon: "download", asks: true, id: "archive", title: "All files in one archive, which is compressed: it is smaller than what they take on the node" });
    const pin = button("Pin…", () => askToPin(this.volume, decided), { icon: "pin", asks: true, id: "pin" });
    const release = button("Release…", () => askToRelease(this.volume, decided), { icon: "release", asks: true, id: "release" });
    const back = button(v.hold?.kind === "Released" ? "Undo release" : "Unpin", () => this.#takeBack(decided), { asks: true, id: "unpin" });
    const remove = button("Delete…", () => askToRemove(this.volume, (said) => this.#removed(said)), { icon: "trash", class: "danger", asks: true, id: "remove" });
    const kept = v.pool ? [] : v.hold ? [pin, back] : [pin, release];
    const focused = this.tools.contains(document.activeElement) && document.activeElement.id;
    this.tools.replaceChildren(all, ...kept, remove);
    if (focused) (document.getElementById(focused) ?? pin).focus();
  }

  async #takeBack(decided) {
    try {
      decided(await takeBack(this.volume));
    } catch (problem) {
      this.notices.replaceChildren(trouble(problem, "patch", this.id.namespace));
    }
  }

  #drawFacts() {
    const v = this.volume;
    if (!v) return;
    const now = Date.now();
    const pairs = [
      ["Volume", visible(v.volume) || "–"],
      v.owner && ["Owner", `${v.owner}${v.guessed ? " (guessed)" : ""}${v.jobIndex ? `, index ${visible(v.jobIndex)}` : ""}`],
      ["Node", visible(v.node)],
      ["Size", v.inodes === undefined ? size(v.bytes) : `${size(v.bytes)} in ${count(v.inodes)} inodes`],
      ["Retained", Number.isNaN(v.retained) ? "–" : `${span(now - v.retained)} ago (${moment(v.retained).slice(0, 16)})`],
      ["Time left", timeLeft(v, now)],
      v.hold && [visible(v.hold.kind), holdInFull(v.hold)],
      v.sooner && ["Note", "The node’s disk fills up: the volume may go earlier."],
      v.foreign && ["Note", "It is of an earlier namespace of this name."],
    ];
    this.outcome.replaceChildren(outcomeOf(v));
    this.facts.replaceChildren(...pairs.filter(Boolean).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  }

  #drawPath() {
    const { id, route } = this;
    if (!route) return;
    this.heading.textContent = this.title;
    this.app.name(this.title);
    const steps = [
      { text: id.namespace, href: this.#listAddress() },
      { text: this.volume?.pod || id.name, href: format(id) },
      ...ancestors(route.ref).map((ref) => ({ text: decode(base(ref)), href: format({ ...id, ref }) })),
    ].map(({ text, href }, i, { length }) => el("li", {}, el("a", { href, title: visible(text), "aria-current": i === length - 1 ? "page" : null }, stepOf(text))));
    if (steps.length > firstSteps + lastSteps + 1) {
      const middle = steps.slice(firstSteps, -lastSteps);
      const more = el("li", {}, el("button", { type: "button", class: "plain", "aria-label": `Show ${middle.length} more steps of the path`, on: { click: () => more.replaceWith(...middle) } }, "…"));
      steps.splice(firstSteps, middle.length, more);
    }
    this.steps.replaceChildren(...steps);
  }

  // The list that the reader came from, which may be that of all namespaces.
  #listAddress() {
    return this.app.listAddress ?? format({ namespace: this.id.namespace });
  }

  // Backspace goes up: to the directory above, and from the top to the list.
  #key(event) {
    if (event.key !== "Backspace" || event.ctrlKey || event.metaKey || event.altKey || writable(event.target)) return;
    event.preventDefault();
    const { ref } = this.route;
    this.app.go(ref === "" ? this.#listAddress() : format({ ...this.id, ref: parent(ref) }));
  }

  get title() {
    const name = visible(this.volume?.pod || this.id.name);
    return this.route?.ref ? `${visible(decode(base(this.route.ref)))}, ${name}` : name;
  }

  accepts(route) {
    return route.namespace === this.id.namespace && route.name === this.id.name;
  }

  // update shows another part of the volume.
  async update(route) {
    const before = this.route;
    this.route = route;
    this.#drawPath();
    if (before && sameFile(before, route) && this.inner?.update) {
      this.inner.update(route);
      return;
    }
    const type = this.inner?.typeOf?.(route.ref);
    this.inner?.end();
    this.inner = null;
    this.notices.replaceChildren();
    if (!before && route.ref === "") {
      route = await this.#toLog(route);
      if (this.ended || this.route !== route) return;
    }
    this.top.classList.toggle("small", route.ref !== "");
    this.#hideEnding();
    await this.#open(route, type);
  }

  // toLog goes on to the log of a pod that failed, from the volume with its logs.
  async #toLog(route) {
    this.content.replaceChildren(el("p", { class: "status" }, "Loading…"));
    const volume = await this.whose();
    if (!this.isLogs || volume.outcome !== "Failed") return route;
    await this.loading;
    const ref = await this.log;
    if (!ref || this.ended || this.route !== route) return route;
    history.replaceState(null, "", format({ ...this.id, ref }));
    this.route = parse(location.hash);
    this.#drawPath();
    return this.route;
  }

  // open shows what a path leads to. type is what it is, if that is known.
  async #open(route, type) {
    this.opening?.abort();
    this.opening = new AbortController();
    const { signal } = this.opening;
    let found = type ?? (route.ref === "" ? { type: "directory" } : null);
    if (!found) {
      this.content.replaceChildren(el("p", { class: "status" }, "Loading…"));
      try {
        found = await entry(this.id, route.ref, signal);
      } catch (problem) {
        if (problem.name === "AbortError") return;
        this.content.replaceChildren();
        this.trouble(problem, "files");
        return;
      }
    }
    const View = found.type === "directory" ? DirectoryView : FileView;
    this.inner = new View(this, route, found);
    this.content.replaceChildren(this.inner.root);
    this.inner.begin();
  }

  // trouble shows a problem once: facts and files may fail for the same reason.
  trouble(problem, action, again) {
    const node = trouble(problem, action, this.id.namespace, again ?? (() => this.again()), this.id.name);
    if (![...this.notices.children].some((other) => other.textContent === node.textContent)) this.notices.append(node);
  }

  // again asks for everything once more.
  again() {
    this.inner?.end();
    this.inner = null;
    this.log = null;
    this.#load();
    this.update(this.route);
  }

  #removed(said) {
    this.app.toast(said);
    this.app.store?.forget(this.id.name);
    this.app.go(this.#listAddress());
  }

  end() {
    this.ended = true;
    this.#leaving.abort();
    this.opening?.abort();
    clearInterval(this.timer);
    this.inner?.end();
  }
}

// stepOf shows a step of a path. A name with characters that hide something is shown as names of files are.
function stepOf(text) {
  return namePieces(text).some(({ odd }) => odd) ? nameOf(text) : el("bdi", { class: "name" }, cut(text));
}
