package csi

import (
	"fmt"
	"strings"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// maxName is the specification's limit on a name, maxNodeID that on a node ID, in bytes.
	maxName   = 128
	maxNodeID = 256
)

// checkName refuses what the specification does not allow as the name of a volume or a snapshot.
func checkName(name string) error {
	switch {
	case name == "":
		return volume.Invalid("name", "is missing")
	case len(name) > maxName:
		return volume.Invalid("name", fmt.Sprintf("is longer than %d bytes", maxName))
	case strings.ContainsFunc(name, banned):
		return volume.Invalid("name", "contains a control character")
	}
	return nil
}

// banned is the specification's list of characters that no name may contain.
func banned(r rune) bool {
	return r <= 0x08 || r == 0x0b || r == 0x0c || r >= 0x0e && r <= 0x1f || r >= 0x7f && r <= 0x9f
}

// node refuses a node ID that is missing, or that no node can have.
func node(id string) error {
	if len(id) > maxNodeID {
		return volume.Invalid("node_id", fmt.Sprintf("is longer than %d bytes", maxNodeID))
	}
	return edge.KnownID("node_id", id)
}
