// Package sealed puts the proof that a body is complete into its bytes. Each hop reports how a
// body ended to the next, and some do not: behind a proxy that speaks HTTP/1.0, or that passes no trailers, a
// body that was cut looks like a whole one.
//
// The client chooses a word and sends it in the header [Header]. The server sends the word back there, and
// after the body a seal of [Size] bytes, which has the word, the length of the body, its checksum, and what
// there is to say about it. The word is new for each request, so nothing that
// is in the body can look like the seal, wherever the body is cut.
package sealed

import (
	"crypto/rand"
	"regexp"
)

const (
	// Header names the word in a request, and in the answer if its body is sealed.
	Header = "Katbox-Seal"
	// Size is the length of a seal in bytes.
	Size = 4096
	// mostRefs and mostFault bound texts in a seal, in bytes, so that they fit whatever they are.
	mostRefs  = 2048
	mostFault = 768
	// mostUnmatched bounds numbers, to what a request may have.
	mostUnmatched = 64
)

var validWord = regexp.MustCompile(`^[A-Za-z0-9]{16,64}$`)

// NewWord returns a word that cannot be guessed.
func NewWord() string { return rand.Text() }

// ValidWord reports whether a request may have this word.
func ValidWord(word string) bool { return validWord.MatchString(word) }

// Notes are what there is to say about an archive once it has ended.
type Notes struct {
	// Skipped is how many entries the archive leaves out, since they are neither files nor directories
	// nor symbolic links, and SkippedRefs are the refs of the first few.
	Skipped     int      `json:"skipped,omitempty"`
	SkippedRefs []string `json:"skippedRefs,omitempty"`
	// Unmatched are the places of the request's patterns to exclude that have left nothing out.
	Unmatched []int `json:"unmatched,omitempty"`
	// Fault says why the archive is not what it should be, though it came to its end; empty if it is.
	Fault string `json:"fault,omitempty"`
}

// bounded returns the notes as a seal can hold them: printable, and not too long.
func (n Notes) bounded() Notes {
	refs, size := n.SkippedRefs, 0
	n.Skipped, n.SkippedRefs = max(0, n.Skipped), nil
	for _, ref := range refs {
		ref = printable(ref)
		if size += len(ref) + len(`"",`); size > mostRefs {
			break
		}
		n.SkippedRefs = append(n.SkippedRefs, ref)
	}
	n.Unmatched = n.Unmatched[:min(len(n.Unmatched), mostUnmatched)]
	n.Fault = printable(n.Fault)
	n.Fault = n.Fault[:min(len(n.Fault), mostFault)]
	return n
}

// printable returns a text in ASCII, of characters that JSON has as they are. A ref is such a text.
func printable(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			b[i] = '?'
		}
	}
	return string(b)
}

// seal is what is in one.
type seal struct {
	Word string `json:"seal"`
	// Bytes is the length of the body, and Sum its CRC-32C.
	Bytes int64  `json:"bytes"`
	Sum   uint32 `json:"crc32c"`
	Notes
}
