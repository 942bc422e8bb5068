// A cookie goes to all ports of 127.0.0.1, this key to the page of this port alone.
const given = /^#key=([\w-]+)$/.exec(location.hash);
if (given) {
  localStorage.setItem("katbox-key", given[1]);
  history.replaceState(null, "", "/");
}

/** The value of the header Katbox-Page, without which the server refuses requests for data. */
export const key = localStorage.getItem("katbox-key") ?? "";
