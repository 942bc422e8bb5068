package controller

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/volume"
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

// exists tells whether there can be an object with the ID: all IDs are names of Kubernetes objects. An
// ID that none can have is unknown, not invalid: to delete it is a success.
func exists(id string) bool { return len(validation.IsDNS1123Subdomain(id)) == 0 }

// required refuses an ID that is missing.
func required(field, id string) error {
	if id == "" {
		return volume.Invalid(field, "is missing")
	}
	return nil
}

// known refuses an ID that is missing, or that nothing can have.
func known(field, id string) error {
	if err := required(field, id); err != nil {
		return err
	}
	if !exists(id) {
		return fmt.Errorf("%s %.300q: %w", field, id, volume.ErrNotFound)
	}
	return nil
}

// node refuses a node ID that is missing, or that no node can have.
func node(id string) error {
	if len(id) > maxNodeID {
		return volume.Invalid("node_id", fmt.Sprintf("is longer than %d bytes", maxNodeID))
	}
	return known("node_id", id)
}
