// What a list lacks, in words.

import { count } from "./format.js";

const reasons = { __proto__: null, NotConnected: "not connected", NoAnswer: "no answer in time", Failed: "answered with an error" };

// missingNodes says which nodes a list lacks: a title and a text; null if it lacks none.
export function missingNodes(fleet, clock) {
  const named = fleet?.missing ?? [];
  const all = named.length + (fleet?.missingMore ?? 0);
  if (all === 0) return null;
  const names = named.map(({ node, since, reason }) => {
    const why = reasons[reason] ?? reason;
    return `${node} (${since ? `${why} since ${clock(Date.parse(since))}` : why})`;
  });
  if (fleet.missingMore > 0) names.push(`${count(fleet.missingMore)} more`);
  const title = all === 1
    ? `1 of ${count(fleet.nodes)} nodes did not answer; its volumes are not in this list`
    : `${count(all)} of ${count(fleet.nodes)} nodes did not answer; their volumes are not in this list`;
  return { title, text: `${names.join(", ")}. Nothing is lost by that: the volumes are shown again when the nodes are back.` };
}

// otherWarnings are the warnings of the server that the notice about nodes does not say.
export function otherWarnings(warnings, fleet) {
  const said = (fleet?.missing?.length ?? 0) > 0;
  return warnings.map((text) => text.replace(/^katbox: /, "")).filter((text) => !(said && /did not answer/.test(text)));
}
