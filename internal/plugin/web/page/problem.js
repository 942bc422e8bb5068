// What the page tells people beside what they came for: what went wrong, and what they can do about it.

import { button, el, icon } from "./dom.js";
import { visible } from "./names.js";
import { everywhere, format, goneView } from "./route.js";

// Problem is a request that failed. status is the HTTP status, 0 if there was no answer; cause is the
// reason of a bad request, retryAfter how many seconds the server wants to be left alone.
export class Problem extends Error {
  constructor({ status, reason = "", message = "", cause = "", retryAfter = 0 }) {
    super(message);
    Object.assign(this, { status, reason, cause, retryAfter });
  }
}

// problemOf reads the body of an answer that is an error: a Status of Kubernetes, or a text.
export function problemOf(status, header, body) {
  const retryAfter = Number(header.get("Retry-After")) || 0;
  try {
    const said = JSON.parse(body);
    if (said.kind === "Status") {
      const first = said.details?.causes?.[0];
      return new Problem({
        status, reason: said.reason, message: said.message, cause: first?.reason ?? first?.type ?? "",
        retryAfter: retryAfter || said.details?.retryAfterSeconds || 0,
      });
    }
    if (said.message) return new Problem({ status, message: said.message, retryAfter });
  } catch {
    // Not JSON: a text.
  }
  return new Problem({ status, message: body.trim().slice(0, 1000), retryAfter });
}

// The rights that requests take, and the roles of Kubernetes that include them.
const rights = {
  list: { verb: "list", resource: "retainedvolumes", does: "list retained volumes", role: "view" },
  get: { verb: "get", resource: "retainedvolumes", does: "see this volume", role: "view" },
  delete: { verb: "delete", resource: "retainedvolumes", does: "delete this volume", role: "edit" },
  patch: { verb: "patch", resource: "retainedvolumes", does: "keep volumes longer", role: "katbox-keep" },
  files: { verb: "get", resource: "retainedvolumes/files", does: "list the files of this volume", role: "edit" },
  search: { verb: "get", resource: "retainedvolumes/log", does: "search the files of volumes", role: "edit" },
  log: { verb: "get", resource: "retainedvolumes/log", does: "read the files of this volume", role: "edit" },
};

// missing says which right a request lacked, in the words of RBAC.
function missing(action, namespace) {
  const { verb, resource, does, role } = rights[action];
  const all = namespace === everywhere;
  const where = all ? "in all namespaces" : `in the namespace ${namespace}`;
  const roles = { view: "roles view, edit and admin include", edit: "roles edit and admin include", "katbox-keep": "role katbox-keep includes" }[role];
  return {
    title: `You may not ${does}${["list", "search"].includes(action) ? ` ${where}` : ""}`,
    text: `The right to ${verb} ${resource} (group katbox.io) ${where} is missing. The ${roles} it.`,
    advice: all
      ? "Choose one namespace above, or ask an administrator of the cluster for this right."
      : `Ask an administrator of the ${role === "katbox-keep" ? "cluster" : "namespace"} for the role ${role}.`,
  };
}

// explain says what a problem means: a title, a text and an advice. action is what was tried (see
// rights), namespace where.
export function explain(problem, action, namespace) {
  const { status, reason, message } = problem;
  const wait = problem.retryAfter > 0 ? ` in ${problem.retryAfter} s` : " in a moment";
  switch (true) {
    case !(problem instanceof Problem):
      return { title: "The page has failed", text: String(problem?.message ?? problem), advice: "Reload the page. If it happens again, please report it." };
    case status === 0:
      return {
        title: "The program behind this page does not answer",
        text: "It ends when its terminal is closed, with Ctrl-C, or when the page was not used for half an hour.",
        advice: "Start “kubectl katbox ui” again, and open the address that it prints.",
      };
    case status === 401:
      return { title: "You are not logged in", text: message, advice: "Check with kubectl that your login to the cluster is still valid, and start “kubectl katbox ui” again." };
    case status === 403 && reason === "Forbidden" && Boolean(rights[action]):
      return missing(action, namespace);
    case status === 403:
      return { title: "The request was refused", text: message, advice: "Open the page by the address that “kubectl katbox ui” prints." };
    case status === 404 && action === "list":
      return { title: "There are no retained volumes in this cluster’s API", text: message, advice: "Katbox’s gateway may not be installed. Ask an administrator of the cluster." };
    case status === 404 && (action === "files" || action === "log") && !/(retained|such) volume/.test(message):
      return { title: "There is no such file or directory", text: message, advice: "Go up by the path above, and look for it there." };
    case status === 404:
      return { gone: true, title: "This volume is gone", text: message, advice: "Its time was over, its node needed the space, or it was deleted: the list of gone volumes says which." };
    case status === 409 && action === "patch":
      return { title: "The volume cannot be kept so long", text: message, advice: "" };
    case status === 409:
      return { title: "This volume is in use again", text: message, advice: "It is published for a pod now. Its files can be read here once the pod has ended." };
    case status === 410 && reason === "Expired" && action === "list":
      return { title: "The list became too old while it was read", text: message, advice: "Refresh the list." };
    case status === 410:
      return { gone: true, title: "This volume has just gone", text: message, advice: "Its time was over, or its node needed the space." };
    case status === 501:
      return { title: "This cluster’s gateway is too old to release volumes", text: message, advice: "Ask an administrator of the cluster to upgrade it. Nothing was changed." };
    case status === 429:
      return { title: "There are too many requests at the moment", text: message, advice: `Try again${wait}.` };
    case status === 502:
      return { title: "The cluster does not answer", text: message, advice: "Check with kubectl whether you reach it, and try again." };
    case status === 503:
      return { title: "The volume’s node, or the gateway, is not connected", text: message, advice: `Nothing is lost by that. Try again${wait}.` };
    case status === 504:
      return { title: "There was no answer in time", text: message, advice: `The node may be busy. Try again${wait}.` };
    case status === 400 && action === "search":
      return { title: "This cannot be searched for", text: message, advice: /no parameter/.test(message) ? "The cluster’s gateway is too old for it." : "" };
    case status === 400:
      return { title: "This cannot be shown", text: message, advice: "" };
  }
  return { title: `The server answered with an error (${status})`, text: message, advice: "Try again. The log of Katbox’s gateway may say more." };
}

// said is how many milliseconds a text stays for screen readers to say it.
const said = 5000;

// announce makes screen readers say a text, after those that they have not said yet.
export function announce(text) {
  const line = el("p", {}, text);
  document.getElementById("live").append(line);
  setTimeout(() => line.remove(), said);
}

// notice makes a box with a title, and texts below it. kind is "info", "warning" or "error".
export function notice(kind, title, texts = [], actions = []) {
  return el("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" },
    icon("warning"),
    el("div", {}, el("p", { class: "title" }, visible(title)), texts.filter(Boolean).map((text) => el("p", {}, visible(text.replace(/\s+/g, " ")))),
      actions.length > 0 && el("p", { class: "actions" }, actions)));
}

// trouble says what a problem is. again repeats what failed, if that may help. name is the volume that it is
// about: of one that is gone, a link leads to when and why it went.
export function trouble(problem, action, namespace, again, name = "") {
  const { title, text, advice, gone } = explain(problem, action, namespace);
  const hopeless = [400, 401, 403, 404, 410].includes(problem.status);
  const actions = again && !hopeless ? [button("Try again", again)] : [];
  // The name begins with that of its pod, which the list is searched for.
  if (gone && name) actions.push(el("a", { href: format({ namespace, view: goneView, q: name.replace(/\.[^.]*$/, "") }) }, "When and why it went"));
  return notice("error", title, [text, advice], actions);
}
