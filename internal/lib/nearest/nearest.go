// Package nearest finds the word that a person meant.
package nearest

import "strings"

// longest is the length in bytes from which a word is no slip of the pen, and costs time.
const longest = 128

// Of returns the known word that another one is a slip of the pen for, whatever its case, or "".
func Of(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	word = strings.ToLower(word)
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		lower := strings.ToLower(k)
		away := distance(word, lower)
		if len(word) > 3 && strings.HasPrefix(lower, word) {
			away = min(away, 1)
		}
		if away < least {
			best, least = k, away
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
