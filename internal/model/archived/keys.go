package archived

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Sum is the SHA-256 of an object. Its text is in hex digits.
type Sum [sha256.Size]byte

// SumOf returns the sum of an object.
func SumOf(object []byte) Sum { return sha256.Sum256(object) }

// String returns the sum in hex digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// ParseSum returns the sum with that text.
func ParseSum(text string) (s Sum, err error) {
	err = s.UnmarshalText([]byte(text))
	return s, err
}

// MarshalText returns the sum in hex digits.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText takes exactly 64 small hex digits.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(s)) || strings.Trim(string(text), hexDigits) != "" {
		return fmt.Errorf("%w: %.80q is no SHA-256 in hex digits", ErrForm, text)
	}
	_, err := hex.Decode(s[:], text)
	return err
}

const hexDigits = "0123456789abcdef"

// Place is where a volume is in a bucket.
type Place struct {
	Cluster      string
	NamespaceUID string
	volume.Place
}

// Check returns nil if keys can name the place.
func (p Place) Check() error {
	switch {
	case !isUID(p.Cluster):
		return fmt.Errorf("%w: %.80q is no UID of a cluster", ErrForm, p.Cluster)
	case !isUID(p.NamespaceUID):
		return fmt.Errorf("%w: %.80q is no UID of a namespace", ErrForm, p.NamespaceUID)
	case !Archivable(p.Place):
		return fmt.Errorf("%w: %.300q is no volume that a kubelet named", ErrForm, p.String())
	}
	return nil
}

// isUID accepts what API servers give, and what stands in tests for it.
func isUID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
}

// ClusterPrefix is what all keys of a cluster begin with.
func ClusterPrefix(cluster string) string { return cluster + "/" }

// IndexPrefix is what the keys of all indexes of a namespace begin with.
func IndexPrefix(cluster, namespaceUID string) string { return cluster + "/" + namespaceUID + "/i/" }

// IndexStart is what the keys of the indexes of volumes begin with that were retained at that time. A list of those that were
// retained then, or before, begins there.
func IndexStart(cluster, namespaceUID string, retained time.Time) string {
	return IndexPrefix(cluster, namespaceUID) + age(retained)
}

// PiecesPrefix is what the keys of all pieces of a namespace begin with.
func PiecesPrefix(cluster, namespaceUID string) string { return cluster + "/" + namespaceUID + "/p/" }

// Prefix is what the keys of the volume's pieces begin with.
func (p Place) Prefix() string {
	return PiecesPrefix(p.Cluster, p.NamespaceUID) + string(p.Pod) + "/" + string(p.ID) + "/"
}

// PieceKey returns the key of a piece.
func (p Place) PieceKey(number int, sum Sum) string {
	return fmt.Sprintf("%s%06d-%s", p.Prefix(), number, sum)
}

// ParsePieceKey is the inverse of PieceKey.
func ParsePieceKey(key string) (p Place, number int, sum Sum, err error) {
	parts := strings.Split(key, "/")
	if len(key) > MaxKey || len(parts) != 6 || parts[2] != "p" {
		return Place{}, 0, Sum{}, fmt.Errorf("%w: %.80q is no key of a piece", ErrForm, key)
	}
	p = Place{Cluster: parts[0], NamespaceUID: parts[1], Place: volume.Place{Pod: volume.PodUID(parts[3]), ID: volume.ID(parts[4])}}
	if err := p.Check(); err != nil {
		return Place{}, 0, Sum{}, err
	}
	digits, rest, _ := strings.Cut(parts[5], "-")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || len(digits) != 6 || n >= MaxPieces {
		return Place{}, 0, Sum{}, fmt.Errorf("%w: %.80q is no number of a piece", ErrForm, digits)
	}
	sum, err = ParseSum(rest)
	return p, int(n), sum, err
}

// age returns the AGE of a key. A time that has no nanoseconds since 1970 is the oldest.
func age(retained time.Time) string {
	n := uint64(0)
	if y := retained.Year(); y >= 1970 && y <= 2261 {
		n = uint64(max(0, retained.UnixNano()))
	}
	return fmt.Sprintf("%016x", ^n)
}

// parseAge is the inverse of age.
func parseAge(text string) (time.Time, bool) {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != 16 || strings.Trim(text, hexDigits) != "" || ^n > math.MaxInt64 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(^n)), true
}

// IndexID returns the volume whose index has the key, and when it was retained. It looks at no more of the key.
func IndexID(key string) (id volume.ID, retained time.Time, ok bool) {
	parts := strings.Split(key, "/")
	if len(key) > MaxKey || len(parts) < 5 || parts[2] != "i" {
		return "", time.Time{}, false
	}
	digits, name, _ := strings.Cut(parts[3], "-")
	retained, ok = parseAge(digits)
	id = volume.ID(name)
	return id, retained, ok && id.FromKubelet()
}
