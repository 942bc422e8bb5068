// The key of the page. Cookies go to all ports of a machine; this key is known to the page's origin
// alone. The server gives it once, in the fragment of the first address, which leaves the history.

const place = "katbox-key";
const given = /^#key=([\w-]+)$/.exec(location.hash);
let kept = given?.[1] ?? "";
try {
  if (given) localStorage.setItem(place, kept);
  else kept = localStorage.getItem(place) ?? "";
} catch {
  // The browser keeps nothing: the key holds until the page is closed.
}
if (given) history.replaceState(null, "", location.pathname);

// key is the value of the header Katbox-Page, without which the server refuses requests for data.
export const key = kept;
