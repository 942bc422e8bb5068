// The namespaces that were looked at last, kept in this browser.

const key = "katbox-namespaces";
const most = 8;

export function recent() {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept.filter((name) => typeof name === "string").slice(0, most) : [];
  } catch {
    return [];
  }
}

export function remember(namespace) {
  try {
    localStorage.setItem(key, JSON.stringify([namespace, ...recent().filter((name) => name !== namespace)].slice(0, most)));
  } catch {
    // The browser keeps nothing; the field can still be typed in.
  }
}
