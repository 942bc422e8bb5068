// Which items of a loaded list are shown, and in what order. An order is the key of a column, with a
// minus before it if the last come first; empty is the order in which the server sends.

// words cuts what was typed into words. An item is shown if it has all of them.
export function words(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

// matching returns the items whose text has all words.
export function matching(items, text, textOf) {
  const all = words(text);
  if (all.length === 0) return items.slice();
  return items.filter((item) => {
    const there = textOf(item);
    return all.every((word) => there.includes(word));
  });
}

// ordered sorts items in place by the value of a column. What is not known comes last.
export function ordered(items, order, values) {
  const key = order.replace(/^-/, "");
  const value = values[key];
  if (!value) return items;
  const sign = order === key ? 1 : -1;
  // Each value is computed once. Equal ones stay as the server sent them.
  const keyed = items.map((item, i) => ({ item, i, value: value(item) }));
  keyed.sort((a, b) => {
    const unknown = isUnknown(a.value) - isUnknown(b.value);
    if (unknown !== 0) return unknown;
    if (a.value < b.value) return -sign;
    if (a.value > b.value) return sign;
    return a.i - b.i;
  });
  for (const [i, { item }] of keyed.entries()) items[i] = item;
  return items;
}

function isUnknown(value) {
  return Number(value === null || value === undefined || value === "" || Number.isNaN(value));
}

// turned returns the order when the head of a column is pressed. Sizes and times begin with the
// largest, names with A.
export function turned(order, key, largestFirst) {
  const first = largestFirst ? `-${key}` : key;
  if (order !== first) return order.replace(/^-/, "") === key ? "" : first;
  return largestFirst ? key : `-${key}`;
}
