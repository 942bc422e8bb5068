package local

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// Key is the secret of a pool, which only its disk has. UUIDs are in names and labels that many may read, so they prove
// nothing. It prints as nothing that can be used.
type Key string

// keyText is what NewKey makes, in this version and in later ones.
var keyText = regexp.MustCompile(`^[A-Z2-7]{26,64}$`)

// NewKey returns a random key.
func NewKey() Key { return Key(rand.Text()) }

// Valid reports whether the key can be one.
func (k Key) Valid() bool { return keyText.MatchString(string(k)) }

// Hash returns what reports whether a pool has the key, and does not tell the key; empty for none.
func (k Key) Hash() string {
	if k == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("katbox pool key " + string(k)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Format hides the key, for every verb.
func (k Key) Format(f fmt.State, _ rune) {
	text := "a key"
	if k == "" {
		text = "no key"
	}
	_, _ = f.Write([]byte(text))
}
