// What comes before the modules. The theme is set before the page is drawn: this script is no module, so that
// the browser waits for it. The theme is kept in this browser alone.
(() => {
  const key = "katbox-theme";
  const themes = ["auto", "light", "dark"];
  const kept = () => {
    try {
      return themes.find((theme) => theme === localStorage.getItem(key)) ?? "auto";
    } catch {
      return "auto"; // the browser keeps nothing
    }
  };
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
  };
  set(kept());
  addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("theme");
    choice.value = kept();
    choice.addEventListener("change", () => {
      set(choice.value);
      try {
        localStorage.setItem(key, choice.value);
      } catch {
        // It holds until the page is closed.
      }
    });
  });
})();

// A page of which a part did not load says so.
addEventListener("error", (event) => {
  if (!(event.target instanceof HTMLScriptElement)) return;
  const status = document.querySelector("#main > .status");
  if (status) status.textContent = "The page did not load. Load it again; if that does not help, run kubectl katbox ui again.";
}, true);
