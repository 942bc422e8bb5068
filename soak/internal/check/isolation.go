package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
)

// isolation says that a call took too long although nothing was wrong with its
// volume or with the node: then it waited for another volume.
func isolation(a answer) (history.Promise, string) {
	excused := a.cancelled || a.outage || a.slow || a.full || a.held || a.removed
	if excused || a.took <= a.patience {
		return "", ""
	}
	return history.Independent, fmt.Sprintf("nothing was wrong with the volume or the node, so it should take no longer than %s",
		a.patience.Round(time.Millisecond))
}
