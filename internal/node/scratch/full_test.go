package scratch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// fillBytes writes into a file until there is no room.
func fillBytes(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(dir + "/big")
	must(t, err)
	defer f.Close()
	for size := 1 << 20; size >= 512; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// fillNames makes files of the given size until there is no room. btrfs has small ones among its
// metadata.
func fillNames(t *testing.T, dir string, size int) {
	t.Helper()
	data := make([]byte, size)
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d%s", i, strings.Repeat("n", 200))), data, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		must(t, err)
	}
}

// TestDeleteOnFullDisk has many volumes go while there is no room for a name in the trash, which a
// small trash needs a block for.
func TestDeleteOnFullDisk(t *testing.T) {
	roottest.Need(t)
	rows := []struct {
		fstype, full string
		megabytes    int
		fill         func(t *testing.T, dir string)
	}{
		{"ext4", "bytes", 64, fillBytes},
		{"ext4", "inodes", 64, func(t *testing.T, dir string) { fillNames(t, dir, 0) }},
		{"xfs", "bytes", 320, fillBytes},
		{"xfs", "inodes", 320, func(t *testing.T, dir string) {
			// XFS makes inodes of free blocks: so many are not to be tried.
			f, err := os.Create(dir + "/big")
			must(t, err)
			defer f.Close()
			must(t, unix.Fallocate(int(f.Fd()), 0, 0, 200<<20))
			fillNames(t, dir, 0)
		}},
		{"btrfs", "bytes", 128, fillBytes},
		{"btrfs", "metadata", 128, func(t *testing.T, dir string) { fillNames(t, dir, 2000) }},
	}
	for _, row := range rows {
		if roottest.LeftOut(row.fstype) {
			continue
		}
		t.Run(row.fstype+", no "+row.full, func(t *testing.T) {
			d := openAt(t, filepath.Join(roottest.FileSystem(t, row.fstype, row.megabytes), "work"))
			const volumes = 300
			// As long as the kubelet's.
			id := func(i int) volume.ID { return volume.ID(fmt.Sprintf("csi-%064d", i)) }
			for i := range volumes {
				must(t, os.WriteFile(create(t, d, at(pod, id(i)))+"/file", nil, 0o600))
			}
			settle(t, d)
			row.fill(t, d.Path(at(pod, id(volumes-1))))
			inPlace := 0
			for i := range volumes {
				// Nothing is erased from the trash meanwhile. The volume that takes all the room is
				// the last to go.
				_, err := d.Discard(at(pod, id(i)))
				if errors.Is(err, unix.ENOSPC) {
					inPlace++
					err = d.EraseInPlace(context.Background(), at(pod, id(i)), nil)
				}
				must(t, err)
				if exists(d.Path(at(pod, id(i)))) {
					t.Fatalf("volume %d is still there", i)
				}
			}
			t.Logf("%d of %d had to be erased in place", inPlace, volumes)
			entries, _, err := d.TrashPage(0, math.MaxInt)
			must(t, err)
			for _, name := range entries {
				must(t, d.Erase(context.Background(), name, nil))
			}
			trashIsEmpty(t, d)
			settle(t, d)
			must(t, os.WriteFile(create(t, d, here)+"/file", make([]byte, 1<<20), 0o600))
		})
	}
}
