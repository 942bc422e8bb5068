// Downloads come from the other origin, by a ticket that serves once.

import { ticket } from "./api.js";
import { el } from "./dom.js";
import { size } from "./format.js";
import { announce, trouble } from "./problem.js";

// download saves a file, or with the kind "archive" a directory. Problems are shown in notices.
export async function download(id, ref, kind, notices) {
  try {
    const { url, size: bytes } = await ticket(id, ref, kind);
    el("a", { href: url, download: true, rel: "noreferrer" }).click();
    announce(bytes < 0 ? "The download begins" : `The download of ${size(bytes)} begins`);
  } catch (problem) {
    notices.replaceChildren(trouble(problem, "log", id.namespace, () => {
      notices.replaceChildren();
      download(id, ref, kind, notices);
    }));
  }
}
