package duration

import "cmp"

// KeptOf says how long something was kept, of how long that was promised; both are as [Format] writes them, and empty if they
// are not known: "3h of 12h". What was kept longer, as a person wanted, is "2d, promised 12h".
func KeptOf(kept, promised string) string {
	k, wrong := Parse(kept)
	if p, err := Parse(promised); wrong == nil && err == nil && k > p {
		return kept + ", promised " + promised
	}
	return cmp.Or(kept, "-") + " of " + cmp.Or(promised, "-")
}
