package edge

import (
	"errors"
	"fmt"
	"regexp"
)

// nameFormat is the specification's: a domain name of at most 63 characters.
var nameFormat = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9.]{0,61}[a-zA-Z0-9])?$`)

// maxNodeID is the specification's limit on a node ID in bytes.
const maxNodeID = 256

// CheckName returns why the specification does not allow name for a driver.
func CheckName(name string) error {
	if !nameFormat.MatchString(name) {
		return fmt.Errorf("driver name %q is not a domain name of at most 63 characters", name)
	}
	return nil
}

// CheckNodeID returns why the specification does not allow id for a node.
func CheckNodeID(id string) error {
	switch {
	case id == "":
		return errors.New("node ID is missing")
	case len(id) > maxNodeID:
		return fmt.Errorf("node ID is longer than %d bytes", maxNodeID)
	}
	return nil
}
