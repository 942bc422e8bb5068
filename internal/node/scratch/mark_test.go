package scratch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMark reaches all files and directories of a volume, however deep, and the top last; of the rest it opens nothing.
func TestMark(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		if _, err := d.Create(here); err != nil {
			t.Fatal(err)
		}
		top := d.Path(here)
		deep := strings.Repeat("/d", 200)
		must(t, os.MkdirAll(top+deep, 0o700))
		outside := filepath.Join(t.TempDir(), "outside")
		for _, path := range []string{top + "/a", top + deep + "/b", outside} {
			must(t, os.WriteFile(path, nil, 0o400))
		}
		must(t, unix.Mkfifo(top+"/fifo", 0o600))
		must(t, os.Symlink(outside, top+"/link"))
		want := []string{top, top + "/a", top + deep + "/b"}
		for n := 1; n <= 200; n++ {
			want = append(want, top+strings.Repeat("/d", n))
		}

		var got []string
		paces := 0
		mark := func(fd int) error {
			path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
			got = append(got, path)
			return err
		}
		must(t, d.Mark(t.Context(), here, mark, func(context.Context, int) error { paces++; return nil }))
		if last := got[len(got)-1]; last != top {
			t.Errorf("the last one is %s", last)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d marked, want %d", len(got), len(want))
		}

		// What fails is not whole, and the top is not marked.
		refused := errors.New("refused")
		for _, wrong := range []string{top + "/a", top + deep} {
			got = nil
			err := d.Mark(t.Context(), here, func(fd int) error {
				if err := mark(fd); err != nil || got[len(got)-1] == wrong {
					return refused
				}
				return nil
			}, nil)
			if !errors.Is(err, refused) || slices.Contains(got, top) {
				t.Errorf("%s: %v", wrong, err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		got = nil
		if err := d.Mark(ended, here, mark, nil); !errors.Is(err, context.Canceled) || len(got) > 0 {
			t.Errorf("%v, %q", err, got)
		}
		if err := d.Mark(t.Context(), at(pod, "csi-none"), mark, nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no volume: %v", err)
		}
	})
}
