package rules

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/model/pools"
)

const (
	// DeclinedFor is how long volumes like one that an array has refused go to other pools.
	DeclinedFor = 5 * time.Minute
	// MostDeclines bounds what is kept of an array's refusals: StorageClasses have options of all sorts.
	MostDeclines = 16
)

// RefusedText says, for people, which volumes an array refuses, and why.
func RefusedText(needs pools.Needs, why string) string {
	return fmt.Sprintf("the array refuses volumes with %s: %s", needs, why)
}
