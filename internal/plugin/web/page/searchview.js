// The search in the files of volumes: of a namespace, of all, of a job or a pod.

import { strip } from "./ansi.js";
import { grep } from "./api.js";
import { button, el } from "./dom.js";
import { outcomeIcon } from "./facts.js";
import { ago } from "./format.js";
import { decode, nameOf, visible } from "./names.js";
import { announce, notice, trouble } from "./problem.js";
import { everywhere, format, searchView } from "./route.js";
import { Found, notSearched, records, selects } from "./searches.js";

// every is how often the page is drawn while lines come, in milliseconds.
const every = 100;

export class SearchView {
  #leaving = new AbortController();

  constructor(app, route) {
    const { namespace } = route;
    Object.assign(this, { app, namespace, route });
    this.title = namespace === everywhere ? "Search in files of all namespaces" : `Search in files of ${visible(namespace)}`;
    this.heading = el("h1", { tabindex: -1 }, this.title);
    const field = (name, label, props) => {
      this[name] = el("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props });
      return el("label", { class: props.class }, label, this[name]);
    };
    const check = (name, label) => {
      this[name] = el("input", { type: "checkbox" });
      return el("label", { class: "check" }, this[name], label);
    };
    const labels = [
      field("pattern", "Regular expression", { id: "search", type: "search", class: "pattern", required: true, maxlength: 1024 }),
      field("files", "Files", { placeholder: "*.log, out/**" }), field("of", "Owner or pod", { placeholder: "job/NAME, pod/NAME" }),
      check("ignoreCase", "Ignore case"), check("archived", "Archived ones too"),
    ];
    this.cancel = button("Cancel", () => this.#cancelled(), { id: "cancel-search", hidden: true });
    this.form = el("form", { class: "asking", role: "search", "aria-label": "In files", on: { submit: (event) => this.#submitted(event) } },
      labels, el("button", { type: "submit", class: "primary asks" }, "Search"), this.cancel);
    this.status = el("p", { class: "status" });
    this.notices = el("div", { class: "notices" });
    this.list = el("div", { class: "found", tabindex: 0, role: "region", "aria-label": "What was found" });
    const lists = { namespace, q: "" };
    this.root = el("div", { class: "view" },
      el("div", { class: "bar" }, this.heading,
        el("nav", { class: "kinds", "aria-label": "Which volumes" }, el("a", { href: format(lists) }, "Retained"), el("a", { href: format({ ...lists, view: "gone" }) }, "Gone"),
          el("a", { href: format({ namespace, view: searchView }), "aria-current": "true" }, "Search in files"))),
      this.form, this.notices, this.status, this.list);
    this.#fill(route);
  }

  #fill({ q, of, files, flags }) {
    this.pattern.value = q;
    this.of.value = of;
    this.files.value = files;
    this.ignoreCase.checked = flags.includes("i");
    this.archived.checked = flags.includes("a");
  }

  // address leads to the same search.
  get address() {
    const flags = `${this.ignoreCase.checked ? "i" : ""}${this.archived.checked ? "a" : ""}`;
    return format({ namespace: this.namespace, view: searchView, q: this.pattern.value, of: this.of.value.trim(), files: this.files.value.trim(), flags });
  }

  begin() {
    const { search } = this.app;
    if (search?.address === this.address && search.found.over) {
      this.found = search.found;
      this.#drawAll();
      this.list.scrollTop = search.place ?? 0;
    } else this.#opened();
  }

  // opened begins the search of an address. One of the archive costs much, and the address may be another person's link: it waits for a press.
  #opened() {
    if (this.pattern.value && !this.archived.checked) {
      this.#run();
      return;
    }
    this.#clear();
    if (this.pattern.value) this.status.textContent = "“Search” begins. It also reads what is in the archive.";
  }

  // accepts reports whether a route leads to this view, and update shows it.
  accepts(route) {
    return !route.name && route.view === searchView && route.namespace === this.namespace;
  }

  update(route) {
    this.#fill(route);
    if (!this.pattern.value || this.app.search?.address !== this.address) this.#opened();
  }

  // clear ends a search, and shows nothing of it.
  #clear() {
    this.#leaving.abort();
    this.found = this.app.search = null;
    this.cancel.hidden = this.list.hidden = true;
    this.list.replaceChildren();
    this.notices.replaceChildren();
    this.status.textContent = "";
    this.pattern.focus();
  }

  #submitted(event) {
    event.preventDefault();
    history.replaceState(null, "", this.address);
    this.app.listAddress = this.address;
    this.#run();
  }

  #cancelled() {
    if (!this.found || this.found.over) return;
    this.found.stopped = true;
    this.#leaving.abort();
    this.#ended();
  }

  async #run() {
    this.#leaving.abort();
    this.#leaving = new AbortController();
    const { signal } = this.#leaving;
    const found = (this.found = new Found());
    this.app.search = { address: this.address, found };
    this.#drawAll();
    const selected = selects(this.of.value.trim());
    if (!selected) {
      found.stopped = true;
      this.#ended([notice("error", "Only the volumes of an owner of pods, or of a pod, can be searched alone", ["Write it as job/NAME or pod/NAME, or leave the field empty."])]);
      return;
    }
    const what = { grep: this.pattern.value, files: this.files.value.trim(), ignoreCase: this.ignoreCase.checked ? "true" : "", archived: this.archived.checked ? "true" : "" };
    try {
      const body = await grep(this.namespace, { selects: selected, what, signal });
      this.app.reached(this.namespace);
      let drawn = Date.now();
      for await (const record of records(body)) {
        const line = found.take(record);
        if (line) this.#add(line);
        if (found.full) break;
        if (Date.now() - drawn > every) {
          drawn = Date.now();
          this.#say();
          await new Promise((done) => setTimeout(done));
        }
        if (signal.aborted) return;
        if (!line) this.#say();
      }
    } catch (problem) {
      if (problem.name === "AbortError" || signal.aborted) return;
      found.problem = problem;
    }
    if (signal.aborted) return;
    this.#leaving.abort();
    this.#ended();
  }

  // ended shows the end of a search.
  #ended(notices = []) {
    this.#say(notices);
    announce(this.found.status());
  }

  #drawAll() {
    this.sections = new Map();
    this.list.replaceChildren();
    for (const of of this.found.volumes.values()) for (const line of of.lines) this.#add({ line, of });
    this.#say();
  }

  // add shows a line below its volume.
  #add({ line, of }) {
    const { namespace, name } = of.volume.metadata;
    let lines = this.sections.get(of);
    if (!lines) {
      const { spec, status } = of.volume;
      lines = el("ol");
      const facts = [this.namespace === everywhere && namespace, spec.volumeName, status.phase === "Archived" ? "archived" : spec.nodeName, ago(Date.parse(status.retainedAt), Date.now())];
      this.list.append(el("section", {},
        el("h2", {}, outcomeIcon(status.outcome), " ", el("a", { href: format({ namespace, name }) }, nameOf(spec.podName || name)),
          el("span", {}, facts.filter(Boolean).map((text) => ` · ${visible(text)}`))), lines));
      this.sections.set(of, lines);
    }
    const at = line.line > 0 ? { from: line.line, to: line.line } : null;
    lines.append(el("li", {},
      el("a", { href: format({ namespace, name, ref: line.file, lines: at }) }, nameOf(decode(line.file)), at && `:${line.line}`),
      el("code", {}, visible(strip(line.text ?? "").replaceAll("\t", "    ")), line.cut && "…")));
  }

  // say writes how far the search is, and at its end what was not searched.
  #say(notices = []) {
    const { found } = this;
    if (found.over && document.activeElement === this.cancel) this.pattern.focus(); // what is hidden loses it
    this.cancel.hidden = found.over;
    this.status.textContent = found.status();
    this.list.hidden = found.lines === 0;
    if (!found.over) {
      this.notices.replaceChildren();
      return;
    }
    const left = found.end && notSearched(found.end);
    if (left) notices.push(notice("warning", "Not searched", [left + (found.end.archived > 0 || found.end.archivedMore ? ". “Archived ones too” searches what is in the archive." : "")]));
    if (found.problem) notices.push(trouble(found.problem, "search", this.namespace, () => this.#run()));
    this.notices.replaceChildren(...notices);
  }

  end() {
    if (this.found && this.app.search?.found === this.found) this.app.search.place = this.list.scrollTop;
    this.#leaving.abort();
  }
}
