package beneath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMovedAwayIsNoMount: a directory that moves away during the call is gone, and nothing is
// mounted there. openat2 alone takes some of 10,000 such calls for a mount point.
func TestMovedAwayIsNoMount(t *testing.T) {
	eachKernel(t, func(t *testing.T, top string, o *Opener) {
		in, out := filepath.Join(top, "in"), filepath.Join(top, "out")
		must(t, os.MkdirAll(in+"/moving", 0o700))
		must(t, os.Mkdir(out, 0o700))
		at := handle(t, in)
		stop, stopped := make(chan struct{}), make(chan error)
		go func() {
			for {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				err := errors.Join(os.Rename(in+"/moving", out+"/moving"), os.Rename(out+"/moving", in+"/moving"))
				if err != nil {
					stopped <- err
					return
				}
			}
		}()
		found, gone := 0, 0
		for range 200_000 {
			fd, err := o.Look(at, "moving")
			switch {
			case err == nil:
				unix.Close(fd)
				found++
			case errors.Is(err, unix.ENOENT):
				gone++
			default:
				t.Fatalf("after %d calls: %v", found+gone, err)
			}
		}
		close(stop)
		must(t, <-stopped)
		t.Logf("%d found, %d gone", found, gone)
	})
}
