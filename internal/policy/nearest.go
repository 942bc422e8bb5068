package policy

import "strings"

// nearest returns the attribute that a key is a slip of the pen for, or "".
func nearest(key string) string {
	if len(key) > MaxValue {
		return ""
	}
	key = strings.ToLower(key)
	best, least := "", max(2, len(key)/3)+1
	for _, a := range Attributes {
		known := strings.ToLower(a.Key)
		away := distance(key, known)
		if len(key) > 3 && strings.HasPrefix(known, key) {
			away = 1
		}
		if away < least {
			best, least = a.Key, away
		}
	}
	return best
}

// distance is how many bytes are to be inserted, removed or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
