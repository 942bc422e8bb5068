package scratch

import "strings"

// partMark stands in the name of a part, after that of the entry. Fresh names do
// not have it.
const partMark = "."

// partName returns a fresh name in the trash for a part of an entry: something
// that Erase sets apart to erase it at the end. entry is empty for what is not
// in the trash.
func partName(entry string) string {
	if entry == "" {
		return freshName()
	}
	whole, _, _ := strings.Cut(entry, partMark)
	return whole + partMark + freshName()
}

// SameEntry tells whether two names in the trash are of parts of one entry, or of
// one and its whole. While one of them is being erased, the other may be about to
// be by the same call of [Dir.Erase].
func SameEntry(a, b string) bool {
	a, _, _ = strings.Cut(a, partMark)
	b, _, _ = strings.Cut(b, partMark)
	return a == b
}
