package localdisk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestCopyOfAPool: cp copies neither projects nor subvolumes. The volumes of a pool that was restored from a backup have
// their data, their sizes are those of their files, and their limits hold where that is possible.
func TestCopyOfAPool(t *testing.T) {
	each(t, []kind{quotaOnXFS, quotaOnExt4, onBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", 16*mib))
		path := p.stage(r)
		must(t, os.MkdirAll(path+"/a/b", 0o777))
		write(t, path+"/a/b/file", string(make([]byte, 5*mib)))
		p.unstage(r, path)
		must(t, p.Close())
		p.Pool = nil
		copied := filepath.Join(filepath.Dir(p.path), "copy")
		if out, err := roottest.Run("cp", "-a", "--reflink=never", p.path, copied); err != nil {
			t.Fatal(out, err)
		}
		p.path = copied
		p.open()
		path = p.stage(r)
		stats, err := p.Stats(r, path)
		if err != nil || stats.Used.Bytes < 5*mib || stats.Used.Bytes > 6*mib {
			t.Errorf("stats %+v, %v, with 5 MiB in it", stats, err)
		}
		out, err := roottest.AsPod(path, "dd", "if=/dev/zero", "of=big", "bs=1M", "count=32", "conv=fsync")
		if holds := err != nil; holds != (k.backend == local.ProjectQuota) {
			t.Errorf("32 MiB into a volume of 16 with 5 in it: %s, %v", out, err)
		}
		if stats, err = p.Stats(r, path); err != nil || k.backend == local.ProjectQuota && stats.Used.Bytes > r.Size ||
			k.backend != local.ProjectQuota && stats.Used.Bytes < 37*mib {
			t.Errorf("stats %+v, %v", stats, err)
		}
		p.unstage(r, path)
		p.reopen()
		path = p.stage(r)
		if has := p.hasProject(r, p.projectOf(r.Name)); has != (k.backend == local.ProjectQuota) {
			t.Errorf("it has its project: %t", has)
		}
		p.unstage(r, path)
		p.delete(r)
		must(t, p.Erase(t.Context()))
		if left, err := p.dir.TrashSize(); err != nil || left != 0 {
			t.Fatalf("%d left in the trash, %v", left, err)
		}
	})
}
