package daemon

import (
	"fmt"
	"strconv"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// Name is what pods call the driver.
const Name = "katbox.csi.paypal.com"

// RecordsFile is what the daemon calls the file of its records, in its working directory.
const RecordsFile = ".katbox.db"

// Flags is the daemon's command line for a run.
func Flags(l testbed.Layout, d workload.Driver) []string {
	flags := l.Flags(
		"--afterlifespan", d.Lifespan.String(),
		// The soak's kubelet evicts nothing, and its disk is judged by the headroom alone.
		"--kubelet-line", "none",
		"--headroom", strconv.FormatFloat(d.Headroom, 'g', -1, 64),
		"--pruneinterval", d.PruneInterval.String(),
		"--orphan-grace", d.OrphanGrace.String(),
		"--max-pinned", strconv.FormatFloat(100*d.Pinned(), 'f', -1, 64)+"%",
		"--log-level", "info",
	)
	if d.ReleaseGrace > 0 {
		flags = append(flags, "--release-grace", d.ReleaseGrace.String())
	}
	if d.MaxLifespan > 0 {
		flags = append(flags, "--max-lifespan", d.MaxLifespan.String())
	}
	if most := d.MaxPerOwner; most.Last > 0 {
		flags = append(flags, "--max-per-owner", fmt.Sprintf("%d,%d", most.First, most.Last))
	}
	return flags
}
