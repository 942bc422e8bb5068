// A page of which a part did not load says so. This script is no module: it is there when one of them
// is not.
addEventListener("error", (event) => {
  if (!(event.target instanceof HTMLScriptElement)) return;
  const status = document.querySelector("#main > .status");
  if (status) status.textContent = "The page did not load. Load it again; if that does not help, run kubectl katbox ui again.";
}, true);
