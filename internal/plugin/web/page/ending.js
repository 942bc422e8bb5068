// How a pod ended that failed, and where it printed last: both are in the volume with its logs. What containers wrote,
// or a node says, is trusted no more than other contents: it becomes text, of bounded length.

import { bytes, files } from "./api.js";
import { el } from "./dom.js";
import { moment, span } from "./format.js";
import { visible } from "./names.js";
import { format } from "./route.js";

// logsName is the name of that volume in its pod, endRef the file in it that says how the pod ended.
export const logsName = "katbox.logs";
const endRef = "pod.json";
// mostBytes is how long that file may be, mostFiles how many files of logs are looked at, mostShown how many containers
// are shown.
const mostBytes = 64 << 10;
const mostFiles = 1000;
const mostShown = 16;

// The signals that mostly end a process, as a shell counts them in an exit code.
const signals = {
  __proto__: null, 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE",
  14: "SIGALRM", 15: "SIGTERM",
};

// readEnding reads the volume with the logs of a pod: end is how the pod ended, null if that is not known, and log the
// ref of the log that says why, "" if there is none.
export async function readEnding(id, signal) {
  const { entries } = await files(id, { ref: "", limit: mostFiles, depth: 2, signal });
  const known = entries.some((e) => e.ref === endRef && e.type === "file");
  const end = known ? parseEnd((await bytes(id, { ref: endRef, limit: mostBytes, signal })).data) : null;
  return { end, log: logOf(entries, end) };
}

// parseEnd reads the bytes of the file that says how a pod ended; null if they do not say it.
export function parseEnd(data) {
  let pod = null;
  try {
    pod = data.length <= mostBytes ? JSON.parse(new TextDecoder().decode(data)) : null;
  } catch {
    // It is no JSON.
  }
  if (!isObject(pod)) return null;
  const containers = (Array.isArray(pod.containers) ? pod.containers : []).filter(isObject).map((c) => (
    { name: text(c.name), kind: text(c.kind), restarts: whole(c.restarts) ?? 0, ...state(c), last: isObject(c.last) ? state(c.last) : null }));
  const disruption = isObject(pod.disruption) ? pod.disruption : {};
  return {
    reason: text(pod.reason), message: text(pod.message), disruption: [text(disruption.reason), text(disruption.message)].filter(Boolean).join(", "),
    cut: pod.cut === true, containers: containers.sort((a, b) => rank(a) - rank(b) || a.finished - b.finished || 0),
  };
}

function state({ state: name, exitCode, signal, reason, message, started, finished }) {
  return {
    state: text(name), exitCode: whole(exitCode), signal: whole(signal) ?? 0, reason: text(reason), message: text(message).trim(),
    started: time(started), finished: time(finished),
  };
}

// Those that failed come first, the first of them at the very first: what ends later ends because of it.
function rank({ exitCode, kind }) {
  return exitCode ? 0 : kind === "" ? 1 : 2;
}

function isObject(value) {
  return typeof value === "object" && value !== null;
}

function text(value) {
  return typeof value === "string" ? value : "";
}

function whole(value) {
  return Number.isInteger(value) ? value : null;
}

function time(value) {
  return Date.parse(text(value));
}

// logOf returns the ref of the log to begin with: of the first container that failed, else of the first one, what was
// written after its last restart.
export function logOf(entries, end) {
  const logs = new Map();
  for (const { ref, type, size } of entries) {
    const [, container, restart] = /^([^/]+)\/([0-9]{1,9})\.log$/.exec(ref) ?? [];
    if (container === undefined || type !== "file" || !(size > 0)) continue;
    if (!(logs.get(container)?.restart > Number(restart))) logs.set(container, { restart: Number(restart), ref });
  }
  const names = [...(end?.containers.map(({ name }) => name) ?? []), ...[...logs.keys()].sort()];
  return logs.get(names.find((name) => logs.has(name)))?.ref ?? "";
}

// stateLine says in a line how a container ended.
export function stateLine({ state: name, exitCode, signal, reason, started, finished }) {
  const killed = signals[exitCode - 128];
  return visible([
    exitCode === null ? name || "not known" : `exit code ${exitCode}${killed ? ` (${killed})` : ""}`,
    signal !== 0 && `signal ${signal}`, reason, !Number.isNaN(finished) && moment(finished),
    finished >= started && `after ${span(finished - started)}`,
  ].filter(Boolean).join(", "));
}

// endingOf shows how a pod ended, and links to volumes of it.
export function endingOf(end, volumes) {
  const line = (name, words) => words && el("div", {}, el("strong", {}, visible(name)), ` ${visible(words)}`);
  const said = (message) => message && el("pre", {}, message.split("\n").map((words) => visible(words)).join("\n"));
  const { reason, message, disruption, containers, cut } = end ?? { containers: [], reason: "It is not known how the containers ended." };
  return [
    line("Pod:", reason), said(message), line("Disrupted:", disruption),
    ...containers.slice(0, mostShown).flatMap((c) => [
      line(`${c.name}${c.kind && ` (${c.kind})`}:`, stateLine(c)), said(c.message),
      c.restarts > 0 && line("", `restarted ${c.restarts} times${c.last ? `, the time before: ${stateLine(c.last)}` : ""}`), said(c.last?.message),
    ]),
    (cut || containers.length > mostShown) && el("div", {}, "Not all of it is shown."),
    volumes.length > 0 && el("div", {}, "Also kept of the pod:", volumes.flatMap(({ namespace, name, volume }) => [" ", el("a", { href: format({ namespace, name }) }, visible(volume))])),
  ].filter(Boolean);
}
