// The page begins here: it asks what it was started for, and shows what the address leads to.

import { alive, link, session } from "./api.js";
import { el, setAway, writable } from "./dom.js";
import { visible } from "./names.js";
import { Chooser } from "./namespaces.js";
import { announce, trouble } from "./problem.js";
import { everywhere, format, goneView, parse, searchView } from "./route.js";
import { SearchView } from "./searchview.js";
import { VolumeView } from "./volume.js";
import { GoneView, VolumesView } from "./volumes.js";

const main = document.getElementById("main");
// heartbeat is how often a page that can be seen asks whether its program is still there, in milliseconds.
const heartbeat = 10_000;
let chooser = null;

// app is what the views share.
const app = {
  session: null,
  // store is the list of retained volumes that was loaded last, goneStore that of volumes that are gone.
  store: null,
  goneStore: null,
  // search is what was found by the last search.
  search: null,
  // listAddress leads to the list that the reader came from.
  listAddress: null,
  // moved says that the reader has followed a link of the page.
  moved: false,

  go(address) {
    if (location.hash === address) show();
    else location.hash = address;
  },

  // name sets the title of the window.
  name(title) {
    document.title = `${title} – Katbox`;
  },

  // reached remembers a namespace that there is something of.
  reached(namespace) {
    if (namespace === everywhere) return;
    chooser.remember(namespace);
  },

  // toast shows a text for a moment.
  toast(text) {
    const node = document.getElementById("toast");
    node.textContent = text;
    node.classList.add("on");
    clearTimeout(app.toasting);
    app.toasting = setTimeout(() => {
      node.classList.remove("on");
      node.textContent = "";
    }, 2500);
    announce(text);
  },
};

let view = null;

// home is the address of the list that the page was started for, start that of what it shows first.
function home() {
  const { namespace, allNamespaces } = app.session;
  return format({ namespace: allNamespaces ? everywhere : namespace });
}

function start() {
  const { namespace, target } = app.session;
  if (!target?.name) return target?.search ? format({ namespace: target.namespace || namespace, q: target.search }) : home();
  return format({ namespace: target.namespace || namespace, name: target.name, ref: target.path ?? "" });
}

function show() {
  const route = parse(location.hash);
  if (!route.namespace) {
    history.replaceState(null, "", start());
    show();
    return;
  }
  chooser.show(route.namespace);
  const gone = !route.name && route.view === goneView;
  if (!route.name && !gone) app.listAddress = location.hash;
  else if (!gone && ![route.namespace, everywhere].includes(parse(app.listAddress ?? "").namespace)) app.listAddress = null;
  if (view?.accepts(route)) {
    view.update?.(route);
    return;
  }
  view?.end();
  const View = route.name ? VolumeView : gone ? GoneView : route.view === searchView ? SearchView : VolumesView;
  view = new View(app, route);
  main.replaceChildren(view.root);
  app.name(view.title);
  if (app.moved) {
    view.heading.focus({ preventScroll: true });
    announce(view.title);
  }
  view.begin(route);
}

// keyPressed handles the keys that work everywhere: / goes to the search, and Ctrl-F does in a text.
function keyPressed(event) {
  const search = document.getElementById("search");
  if (!search || document.querySelector("dialog[open]")) return;
  const find = event.key === "f" && (event.ctrlKey || event.metaKey) && search.classList.contains("find") && document.activeElement !== search;
  const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !writable(event.target);
  if (!find && !slash) return;
  event.preventDefault();
  search.focus();
  search.select();
}

// watch notices when the program behind the page ends, or is there again.
function watch() {
  const ask = () => document.visibilityState === "visible" && alive();
  link.changed = () => {
    setAway(!link.there);
    document.getElementById("away").hidden = link.there;
    if (link.there) announce("The program behind this page answers again");
  };
  setInterval(ask, heartbeat);
  document.addEventListener("visibilitychange", ask);
}

async function begin() {
  addEventListener("keydown", keyPressed);
  // The address is a route: the link may not change it.
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  try {
    app.session = await session();
  } catch (problem) {
    main.replaceChildren(el("h1", { class: "unseen" }, "Katbox"), trouble(problem, "session", "", () => location.reload()));
    return;
  }
  chooser = new Chooser(app);
  watch();
  document.getElementById("version").textContent = app.session.version ? `kubectl katbox ${app.session.version}` : "";
  document.getElementById("user").textContent = app.session.user ? visible(app.session.user) : "";
  document.getElementById("home").href = home();
  addEventListener("hashchange", () => {
    app.moved = true;
    show();
  });
  show();
}

begin();
