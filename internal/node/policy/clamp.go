package policy

import (
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
)

// clamp rounds a lifespan up, to at most the given one. So volumes have few different lifespans, however
// many their pods ask for.
func clamp(d, most time.Duration) time.Duration {
	if d >= most {
		return most
	}
	return min(lifespan.RoundUp(d), most)
}
