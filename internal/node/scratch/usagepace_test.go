package scratch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

func TestUsageInPieces(t *testing.T) {
	d := open(t)
	want := fill(t, create(t, d, here), 300, 300) + 1
	told := 0
	_, inodes, err := d.Usage(t.Context(), here, func(_ context.Context, seen int) error {
		if told += seen; seen > paceEvery {
			t.Errorf("%d names without a pause", seen)
		}
		return nil
	})
	// Going back up counts too, and is cheap.
	if err != nil || inodes != int64(want) || told < want || told > 2*want {
		t.Errorf("%d inodes of %d, told of %d, %v", inodes, want, told, err)
	}

	enough := errors.New("enough")
	calls := 0
	_, _, err = d.Usage(t.Context(), here, func(context.Context, int) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("refused at the first of %d calls: %v", calls, err)
	}
}

// TestDeletionPassesUsage: a volume is moved to the trash and erased while somebody is counting it,
// and none disturbs the other.
func TestDeletionPassesUsage(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		dir := create(t, d, here)
		fill(t, dir, 10, 2*paceEvery)
		var paused int
		_, inodes, err := d.Usage(t.Context(), here, func(context.Context, int) error {
			if paused++; paused == 2 {
				name, _ := discard(t, d, here)
				erase(t, d, name)
			}
			return nil
		})
		if err != nil || inodes < paceEvery/2 || inodes > 2*paceEvery+1 {
			t.Errorf("%d inodes before it was erased, %v", inodes, err)
		}
		if _, _, err := d.Usage(t.Context(), here, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of what was erased: %v", err)
		}
	})
}

// TestUsageLeavesNoTrace: the time of access of what a pod left stays as it is. A directory that is
// read for the first time since it was changed would show that.
func TestUsageLeavesNoTrace(t *testing.T) {
	roottest.Need(t)
	root := t.TempDir()
	roottest.Mount(t, "katbox-test", root, "tmpfs", unix.MS_RELATIME, "")
	d := openAt(t, root)
	dir := create(t, d, here)
	hostile.Deep(t, dir, 2*beneath.MaxOpen, "d")
	long := time.Now().Add(-48 * time.Hour)
	must(t, os.Chtimes(dir, long, long))
	must(t, os.Chtimes(dir+"/d", long, long))
	want := accessed(t, dir, dir+"/d")
	usage(t, d)
	if got := accessed(t, dir, dir+"/d"); got != want {
		t.Errorf("accessed at %v, before that at %v", got, want)
	}
	_, err := os.ReadDir(dir)
	must(t, err)
	if accessed(t, dir, dir+"/d") == want {
		t.Error("this file system notes no times of access")
	}
}

func accessed(t *testing.T, a, b string) [2]unix.Timespec {
	t.Helper()
	var first, second unix.Stat_t
	must(t, unix.Lstat(a, &first))
	must(t, unix.Lstat(b, &second))
	return [2]unix.Timespec{first.Atim, second.Atim}
}

// TestUsageForgetsLinks: what it remembers of files with several links is bounded, and what it
// counts is the same all the same.
func TestUsageForgetsLinks(t *testing.T) {
	const files, links, blocks = 3 * maxLinks, 4, 8
	c := &census{links: map[beneath.ID]uint64{}}
	for range links {
		for i := range files {
			c.count(&unix.Stat_t{Ino: uint64(i), Nlink: links, Blocks: blocks, Mode: unix.S_IFREG})
			if len(c.links) > maxLinks {
				t.Fatalf("%d files remembered", len(c.links))
			}
		}
	}
	if bytes, inodes := c.result(); bytes != files*blocks*512 || inodes != files {
		t.Errorf("%d bytes, %d inodes", bytes, inodes)
	}
}
