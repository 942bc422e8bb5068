package lastwords

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestOnFileSystems copies to the disk that the logs are on, where a copy may share their blocks, and to another one.
func TestOnFileSystems(t *testing.T) {
	roottest.Need(t)
	const megabyte = 1 << 20
	text := strings.Repeat(line(strings.Repeat("x", 100)), 8*megabyte/150)
	for fstype, shares := range map[string]bool{"ext4": false, "xfs": true, "btrfs": true} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			disk := roottest.FileSystem(t, fstype, 512)
			must(t, os.MkdirAll(disk+"/pods/"+nightlyDir+"/main", 0o755))
			must(t, os.WriteFile(disk+"/pods/"+nightlyDir+"/main/0.log", []byte(text), 0o640))
			l, err := Open(Config{Dir: disk + "/pods", MostOpen: 10})
			must(t, err)
			defer l.Close()
			l.Follow(nightly)
			l.Look(t.Context(), nightly.UID)
			other := t.TempDir()
			for _, to := range []string{disk + "/volume", other} {
				must(t, os.MkdirAll(to, 0o755))
				before := free(t, disk)
				dir, err := os.Open(to)
				must(t, err)
				kept, err := l.Copy(t.Context(), nightly.UID, int(dir.Fd()), 64*megabyte, context.Context.Err)
				must(t, err)
				must(t, dir.Close())
				if kept.Bytes != int64(len(text)) {
					t.Errorf("%s: kept %+v", to, kept)
				}
				got, err := os.ReadFile(to + "/main/0.log")
				must(t, err)
				if string(got) != text {
					t.Errorf("%s: %d bytes are kept of %d, or others", to, len(got), len(text))
				}
				if took := before - free(t, disk); to != other && (took < 4*megabyte) != shares {
					t.Errorf("the copy took %d bytes of its disk; does it share blocks: want %t", took, shares)
				}
			}
		})
	}
}

// free is what a file system has free, once it has written all.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	defer d.Close()
	must(t, unix.Syncfs(int(d.Fd())))
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	return int64(st.Bavail) * st.Bsize
}
