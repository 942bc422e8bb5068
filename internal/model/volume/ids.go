package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// IDs is a set of volumes, in which one is found by the digits of its ID without that as a text. Nil is an empty one. It does
// not change, and may be used by several goroutines.
type IDs struct {
	digits map[[sha256.Size]byte]struct{}
	texts  map[ID]struct{}
}

// NewIDs returns the set of those that a map has. The map does not change any more.
func NewIDs(of map[ID]struct{}) *IDs {
	s := &IDs{texts: of, digits: make(map[[sha256.Size]byte]struct{}, len(of))}
	for id := range of {
		if digits, ok := id.Digits(); ok {
			s.digits[digits] = struct{}{}
		}
	}
	return s
}

// Has reports whether a volume is in the set.
func (s *IDs) Has(id ID) bool {
	if s == nil {
		return false
	}
	_, ok := s.texts[id]
	return ok
}

// HasDigits reports whether the volume with a kubelet's ID of these digits is in the set.
func (s *IDs) HasDigits(digits [sha256.Size]byte) bool {
	if s == nil {
		return false
	}
	_, ok := s.digits[digits]
	return ok
}

// Digits returns the bytes that the digits of a kubelet's ID stand for; false for another ID.
func (id ID) Digits() (digits [sha256.Size]byte, ok bool) {
	text, ok := strings.CutPrefix(string(id), "csi-")
	if !ok || len(text) != 2*len(digits) || text != strings.ToLower(text) {
		return digits, false
	}
	_, err := hex.Decode(digits[:], []byte(text))
	return digits, err == nil
}
