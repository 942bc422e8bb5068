// The chooser of a namespace. It offers all of the cluster to those who may list them; to others those that
// were looked at last and those of the kubeconfig. Any other name can be typed.

import { namespaces } from "./api.js";
import { el, icon } from "./dom.js";
import { matching } from "./grid.js";
import { visible } from "./names.js";
import { everywhere, format } from "./route.js";

const key = "katbox-namespaces";
// kept is how many namespaces this browser remembers, and most how many are offered at once.
const kept = 8;
const most = 200;

function recent() {
  try {
    const names = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(names) ? names.filter((name) => typeof name === "string").slice(0, kept) : [];
  } catch {
    return [];
  }
}

export class Chooser {
  #known = { namespaces: [], all: false };

  constructor(app) {
    this.app = app;
    this.name = el("span", { class: "name-of" });
    this.button = el("button", { type: "button", id: "namespace", popovertarget: "choose" },
      el("span", { class: "label" }, "Namespace"), this.name, icon("down"));
    this.search = el("input", {
      type: "search", id: "choose-search", placeholder: "Find or type a namespace", "aria-label": "Find or type a namespace", autocomplete: "off", autocapitalize: "none", spellcheck: "false",
      on: { input: () => this.#offer(), keydown: (event) => this.#key(event) },
    });
    this.list = el("ul", { on: { keydown: (event) => this.#key(event), click: () => this.box.hidePopover() } });
    this.hint = el("p", { class: "hint" });
    this.box = el("div", { id: "choose", popover: "auto", role: "dialog", "aria-label": "Choose a namespace", on: { toggle: (event) => this.#toggled(event) } }, this.search, this.list, this.hint);
    document.getElementById("where").replaceChildren(this.button, this.box);
  }

  // show says which namespace is looked at.
  show(namespace) {
    this.namespace = namespace;
    this.box.hidePopover();
    this.name.textContent = namespace === everywhere ? "All namespaces" : visible(namespace);
  }

  // remember keeps a namespace that there is something of.
  remember(namespace) {
    try {
      localStorage.setItem(key, JSON.stringify([namespace, ...recent().filter((name) => name !== namespace)].slice(0, kept)));
    } catch {
      // The browser keeps nothing; the name can still be typed.
    }
  }

  async #toggled({ newState }) {
    if (newState !== "open") return;
    this.search.value = "";
    this.#offer();
    this.search.focus();
    try {
      this.#known = await namespaces();
    } catch {
      // What was known is offered, and the program's end is said elsewhere.
    }
    this.#offer();
  }

  #offer() {
    const last = recent();
    const names = [...new Set([...last, this.app.session.namespace, ...this.#known.namespaces].filter(Boolean))];
    const found = matching(names, this.search.value, (name) => name);
    const typed = this.search.value.trim();
    const lines = found.slice(0, most).map((name) => this.#line(name, visible(name)));
    if (!typed) lines.unshift(this.#line(everywhere, "All namespaces"));
    if (typed && !names.includes(typed) && typed !== everywhere) lines.push(this.#line(typed, `Open “${visible(typed)}”`));
    // Names that come late do not take the focus away.
    const focused = this.list.contains(document.activeElement) ? document.activeElement.hash : null;
    this.list.replaceChildren(...lines);
    if (focused !== null) [...this.list.querySelectorAll("a")].find((link) => link.hash === focused)?.focus();
    this.hint.textContent = found.length > most ? `${found.length - most} more: type a part of the name`
      : this.#known.all ? "" : "You may not list the cluster’s namespaces: type the name of another one.";
  }

  #line(namespace, text) {
    return el("li", {}, el("a", { href: format({ namespace }), "aria-current": namespace === this.namespace ? "true" : null }, text));
  }

  // Enter in the search opens what was typed, if there is such a namespace, or the first that is offered.
  #key(event) {
    const links = [...this.list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Enter" && at < 0) {
      const typed = this.search.value.trim();
      (links.find((link) => link.textContent === typed) ?? links[0])?.click();
    } else if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (links[at - 1] ?? this.search).focus();
    else return;
    event.preventDefault();
  }
}
