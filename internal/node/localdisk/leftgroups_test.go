package localdisk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestNoQuotaGroupsOfDeletedSubvolumes: the kernel removes the quota group of each subvolume with it, in its own time,
// also those that pods have made, and those whose data lived on in a copy. Kernels before Linux 6.11 leave them.
func TestNoQuotaGroupsOfDeletedSubvolumes(t *testing.T) {
	var release unix.Utsname
	must(t, unix.Uname(&release))
	var major, minor int
	version := unix.ByteSliceToString(release.Release[:])
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 11 {
		roottest.Lacks(t, "Linux 6.11", version, " leaves the quota groups of subvolumes")
	}
	p := newPool(t, onBtrfs)
	groups := func() int {
		must(t, unix.Syncfs(int(p.here.Fd())))
		found, err := kernel.QuotaGroups(int(p.here.Fd()), 0, firstLevel-1)
		must(t, err)
		return len(found)
	}
	before := groups()
	for i := range 3 {
		r := p.make(record(fmt.Sprint("pvc-", i), 16*mib))
		path := p.stage(r)
		write(t, path+"/file", string(make([]byte, 5*mib)))
		s := record(fmt.Sprint("snap-", i), r.Size)
		s.Of = r.Name
		s = p.make(s)
		clone := record(fmt.Sprint("clone-", i), r.Size)
		clone.Source.Snapshot = s.Name
		clone = p.make(clone)
		dir, err := os.Open(path)
		must(t, err)
		must(t, kernel.MakeSubvolume(int(dir.Fd()), "inner", 0))
		must(t, dir.Close())
		write(t, path+"/inner/file", string(make([]byte, mib)))
		if got := groups(); got < before+4 {
			t.Fatalf("there are %d groups, and were %d before", got, before)
		}
		p.unstage(r, path)
		p.delete(r)
		must(t, p.Erase(t.Context()))
		p.delete(s)
		p.delete(clone)
		must(t, p.Erase(t.Context()))
	}
	// The kernel cleans up each time that this is over, which are 30 seconds unless told otherwise.
	must(t, unix.Mount("", filepath.Dir(p.path), "", unix.MS_REMOUNT, "commit=1"))
	for deadline := time.Now().Add(time.Minute); groups() > before; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d groups, and were %d before", groups(), before)
		}
	}
}
