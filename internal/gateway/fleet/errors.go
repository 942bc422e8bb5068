package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The errors of List and Find, beside a [*NotConnectedError].
var (
	// ErrContinue: the Continue of the request is not one that this list has given.
	ErrContinue = errors.New("this \"continue\" does not belong to this list; begin the list anew")
	// ErrExpired: the Continue of the request is older than 15 minutes.
	ErrExpired = errors.New("this \"continue\" is older than 15 minutes; begin the list anew")
	// ErrSilent: nodes are connected, and those that were asked did not answer in time.
	ErrSilent = errors.New("no answer")
	// ErrNotFound: there is no such volume, or none that the reader may see.
	ErrNotFound = errors.New("not found")
)

// NotConnectedError says that the nodes which could answer are not connected.
type NotConnectedError struct {
	// Missing are at least one of them.
	Missing []Missing
}

// Error names the first node, and since when it is missing.
func (e *NotConnectedError) Error() string {
	m := e.Missing[0]
	text := fmt.Sprintf("node %s is not connected to this gateway", m.Node)
	if m.Node == Arrays {
		text = "the API server has not told this gateway what is retained in " + Arrays
	}
	if !m.Since.IsZero() {
		text += " since " + m.Since.UTC().Format(time.RFC3339)
	}
	if more := len(e.Missing) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// silent returns the error of a list if these nodes should answer, and none does.
func silent(nodes []Missing) error {
	nodes = slices.SortedFunc(slices.Values(nodes), byName)
	named := nodes[:min(len(nodes), mostMissing)]
	return fmt.Errorf("%w in time from any of the nodes that may hold such volumes (%s)",
		ErrSilent, names(named, len(nodes)-len(named)))
}
