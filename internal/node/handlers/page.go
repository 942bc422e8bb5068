package handlers

import (
	"net/http"

	"github.com/katbox/katbox/internal/model/api"
)

// mostPage is about how long a page is, in bytes: gateways read no answer of more than 4 MiB. Most
// entries have less than 1 KiB, but one with reasons of people may have 4 KiB.
const mostPage = 3 << 20

// page answers with the longest page that is not too long. most is how many entries there are, and list
// returns a page of that many, whose Continue leads on behind the last one.
func (a *answer) page(most int, list func(entries int) any) error {
	for entries := most; ; {
		page := list(entries)
		text, err := api.Encode(page)
		if err != nil {
			return err
		}
		if len(text) <= mostPage || entries <= 1 {
			return a.Whole(http.StatusOK, "application/json", text)
		}
		entries = max(1, min(entries-1, entries*mostPage/len(text)))
	}
}
