package unpack

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestEnterMeanwhile: what is opened is the directory, never that behind a symbolic link that has its
// name now and then.
func TestEnterMeanwhile(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		needsSymlinks(t, symlink("d", "other"))
		dir := t.TempDir()
		place, aside := filepath.Join(dir, "d"), filepath.Join(dir, "aside")
		must(t, os.Mkdir(aside, 0o700))
		must(t, os.Mkdir(filepath.Join(dir, "other"), 0o700))
		top, err := on.open(dir)
		must(t, err)
		defer top.close()
		real, err := top.look("aside")
		must(t, err)
		stop, stopped := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				err := errors.Join(os.Rename(aside, place), os.Rename(place, aside), os.Symlink("other", place), os.Remove(place))
				if err != nil {
					stopped <- err
					return
				}
			}
		}()
		for range 5000 {
			below, err := top.enter("d")
			if err != nil {
				continue // there is none now, or it is a link
			}
			if is, err := below.self(); err != nil || !is.same(real) {
				t.Errorf("the directory behind the symbolic link is opened: %v", err)
			}
			below.close()
		}
		close(stop)
		must(t, <-stopped)
	})
}
