// Routes are in the fragment of the address:
//
//   #/NAMESPACE                     the volumes of a namespace; * stands for all namespaces
//   #/NAMESPACE/NAME                a volume: the top of its files
//   #/NAMESPACE/NAME/REF            a directory or a file
//   ...?line=10 or ?line=10-20      lines of a file; negative ones count from its end
//
// Behind the question mark also: q (what is searched in a list), sort, group (owner for a list in groups),
// view (text, hex or image; gone for the list of the volumes that are gone; search for a search in files, of which q is the
// pattern, of a job or pod, files a pattern of names, and flags some letters).

export const everywhere = "*";
// goneView is the view of the volumes that are gone.
export const goneView = "gone";
// searchView is the search in the files of volumes.
export const searchView = "search";
// byOwner is the group of lists in which the volumes of one Job, or of another owner of pods, are one row.
export const byOwner = "owner";

// parse reads the fragment of an address.
export function parse(hash) {
  const [path, query = ""] = cut(hash.replace(/^#?\/?/, ""), "?");
  const params = new URLSearchParams(query);
  const [namespace, rest = ""] = cut(path, "/");
  const [name, ref = ""] = cut(rest, "/");
  return {
    namespace: plain(namespace), name: plain(name), ref: ref.replace(/^\/+|\/+$/g, ""),
    lines: parseLines(params.get("line")), q: params.get("q") ?? "", sort: params.get("sort") ?? "", group: params.get("group") ?? "", view: params.get("view") ?? "",
    of: params.get("of") ?? "", files: params.get("files") ?? "", flags: params.get("flags") ?? "",
  };
}

function cut(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// format writes a route as the fragment of an address.
export function format({ namespace, name = "", ref = "", lines = null, q = "", sort = "", group = "", view = "", of = "", files = "", flags = "" }) {
  const elements = [namespace === everywhere ? everywhere : encodeURIComponent(namespace)];
  if (name) elements.push(encodeURIComponent(name));
  if (name && ref) elements.push(ref);
  const params = new URLSearchParams();
  if (view) params.set("view", view);
  if (lines) params.set("line", formatLines(lines));
  if (q) params.set("q", q);
  if (sort) params.set("sort", sort);
  if (group) params.set("group", group);
  for (const [key, value] of Object.entries({ of, files, flags })) if (value) params.set(key, value);
  const query = params.toString();
  return `#/${elements.join("/")}${query ? `?${query}` : ""}`;
}

// parseLines reads "10", "10-20", "-5" (the fifth line from the end) and "-20--10"; null if it is
// none of them.
export function parseLines(text) {
  const match = /^(-?[0-9]{1,15})(?:-(-?[0-9]{1,15}))?$/.exec(text ?? "");
  if (!match) return null;
  const from = Number(match[1]);
  const to = match[2] === undefined ? from : Number(match[2]);
  if (from === 0 || to === 0 || from < 0 !== to < 0) return null;
  return from <= to ? { from, to } : { from: to, to: from };
}

export function formatLines({ from, to }) {
  return from === to ? String(from) : `${from}-${to}`;
}

// sameFile reports whether two routes lead to the same entry of a volume.
export function sameFile(a, b) {
  return a.namespace === b.namespace && a.name === b.name && a.ref === b.ref;
}
