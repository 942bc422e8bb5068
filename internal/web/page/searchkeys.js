// The keys between a search field and the list below it.

// typed goes on in the search with a letter that was typed in the list.
export function typed(key, { search, searched }) {
  search.focus();
  search.value += key;
  searched();
}

// moved goes from the search into the list, and Escape clears the search before that.
export function moved(event, { search, searched, grid }) {
  if (event.key === "ArrowDown" || event.key === "Enter") grid.focus(event.key === "Enter" ? 0 : grid.active);
  else if (event.key === "Escape" && search.value) {
    search.value = "";
    searched();
  } else if (event.key === "Escape") grid.focus(grid.active);
  else return;
  event.preventDefault();
}
