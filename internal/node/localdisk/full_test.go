package localdisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// fill takes all room of a pool's disk, to the last block, as something else than a volume would.
func fill(t *testing.T, p *Pool) {
	t.Helper()
	f, err := os.Create(filepath.Join(p.path, "stranger"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			_ = f.Sync() // it may give room back
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// TestDiskOfSomethingElse fills the disk with what is no volume. Volumes can be retained and deleted all the same.
func TestDiskOfSomethingElse(t *testing.T) {
	each(t, all, func(t *testing.T, k kind) {
		disk := newDisk
		if k.backend == local.ProjectQuota {
			disk = fewInodes // a small one
		}
		p := newPoolOn(t, disk(t, k), k)
		var records []local.Record
		for i := range 40 {
			records = append(records, p.make(record(fmt.Sprintf("pvc-%d", i), 8*mib)))
		}
		fill(t, p.Pool)
		wants(t, p.tryMake(record("pvc-more", 8*mib)), volume.ErrNoSpace)
		for _, r := range records {
			r.Comment = strings.Repeat("retained since the claim was deleted ", 10)
			must(t, p.Save(r))
		}
		p.reopen()
		for _, r := range records {
			p.delete(r)
		}
		must(t, os.Remove(filepath.Join(p.path, "stranger")))
		must(t, p.Erase(t.Context()))
		p.make(record("pvc-more", 8*mib))
		if st, err := os.Stat(filepath.Join(p.path, reserveName)); err != nil || st.Size() != reserveSize {
			t.Errorf("what is set aside for the next time: %v, %v", st, err)
		}
	})
}
