package staged

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// suffix is that of a record; others in the directory are leftovers, or not ours.
	suffix = ".json"
	// newSuffix is added to the name of a record that is being written.
	newSuffix = ".new"
	// damagedSuffix is added to the name of a file that is no record.
	damagedSuffix = ".damaged"
	// longest is how much of a volume's ID its file name shows. The name of a file has 255 bytes at most, that
	// of a custom resource 253.
	longest = 180
)

var acceptable = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,999}$`)

// fileName returns the name of the file of a volume's record. It refuses an ID that is not one element of
// a path.
func fileName(id string) (string, error) {
	if !acceptable.MatchString(id) {
		return "", volume.Invalid("volume_id", "is not made of letters, digits, dots, hyphens and underscores, or begins with a dot")
	}
	if len(id) > longest {
		sum := sha256.Sum256([]byte(id))
		// No ID has a tilde, so no other one has this name.
		id = id[:longest] + "~" + hex.EncodeToString(sum[:16])
	}
	return id + suffix, nil
}
