package mount

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// BenchmarkLook looks what is mounted at one target, as each call does, and in the whole mount
// table, as the start does, with few and with many mounts.
func BenchmarkLook(b *testing.B) {
	roottest.Need(b)
	for _, mounts := range []int{1, 1000} {
		work, pods := b.TempDir(), b.TempDir()
		// All the mounts below it go with this one.
		roottest.Tmpfs(b, pods, 0)
		roottest.UnmountBelowAtEnd(b, pods)
		var source, target string
		for i := range mounts {
			source, target = filepath.Join(work, fmt.Sprint(i)), filepath.Join(pods, fmt.Sprint(i))
			for _, dir := range []string{source, target} {
				if err := unix.Mkdir(dir, 0o700); err != nil {
					b.Fatal(err)
				}
			}
			if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("statx/mounts=%d", mounts), func(b *testing.B) {
			m := New()
			b.ReportAllocs()
			for b.Loop() {
				if showing, err := m.Shows(target, source); err != nil || showing != ShowsSource {
					b.Fatal(showing, err)
				}
			}
		})
		b.Run(fmt.Sprintf("table/mounts=%d", mounts), func(b *testing.B) {
			open := openDir(b, work)
			b.ReportAllocs()
			for b.Loop() {
				if bindings, err := Bindings(open, pods); err != nil || len(bindings) != mounts {
					b.Fatal(len(bindings), err)
				}
			}
		})
	}
}
