package localdisk

import (
	"testing"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestUnstagedWhileFrozen: a daemon that ends in the middle of a copy leaves the origin frozen. If that is unstaged
// before its pool is open again, the kernel keeps the file system and its device. Neither stays.
func TestUnstagedWhileFrozen(t *testing.T) {
	each(t, []kind{imageOnXFS}, func(t *testing.T, k kind) {
		for _, fsType := range []string{"ext4", "xfs"} {
			p := newPool(t, k)
			origin := record("pvc-"+fsType, sizeFor(k))
			if origin.FSType = fsType; fsType == "xfs" {
				origin.Size = 300 * mib
			}
			origin = p.make(origin)
			path := p.stage(origin)
			write(t, path+"/file", "content")
			dead, armed := false, true
			kernel.Inject(t, func(call, _ string) error {
				if dead = dead || armed && call == "Thaw"; dead {
					return errCrash
				}
				return nil
			})
			s := record("snap-"+fsType, origin.Size)
			s.Of = origin.Name
			wants(t, p.tryMake(s), errCrash)
			dead, armed = false, false
			must(t, p.Close())
			wants(t, p.Locations.Unstage(t.Context(), origin.Name, path), volume.ErrBusy)
			p.open()
			must(t, p.Locations.Unstage(t.Context(), origin.Name, path))
			must(t, p.tryMake(s))
			must(t, p.holds(origin, "content"))
			p.delete(s)
			p.delete(origin)
			must(t, p.Close())
			p.Pool = nil
		}
	})
}
