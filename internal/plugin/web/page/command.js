// The same in a terminal: commands of the plugin for what the page shows.

import { button } from "./dom.js";
import { encode } from "./names.js";
import { everywhere } from "./route.js";

// A word that a shell takes as it is.
const plain = /^[\w@%+=:,./-]+$/;

// commandFor returns the command for a place: a list, the directory or the file of a volume. flags say which
// cluster is meant. A path is written so that no character of it means anything to a shell or a terminal.
export function commandFor({ namespace, name = "", ref = "", gone = false, file = false }, flags = []) {
  const words = ["kubectl", "katbox", name ? (file ? "cat" : "ls") : "list", ...flags];
  if (gone) words.push("--gone");
  words.push(...(namespace === everywhere ? ["-A"] : ["-n", namespace]));
  if (name) {
    const path = [...ref].map((c) => (/[\w%.~/-]/.test(c) ? c : encode(c))).join("");
    words.push(`${name}:${path.includes("%") ? ":" : ""}${path}`);
  }
  return words.map((word) => (plain.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

// copyButton makes a button that copies the command for the place that where returns.
export function copyButton(app, where, props = {}) {
  const copy = button("Copy command", async () => {
    const command = commandFor(where(), app.session.flags ?? []);
    try {
      await navigator.clipboard.writeText(command);
      app.toast(`Copied: ${command}`);
    } catch {
      app.toast("The browser did not allow copying");
    }
  }, { icon: "copy", title: "Copy the kubectl command for this", ...props });
  return copy;
}
