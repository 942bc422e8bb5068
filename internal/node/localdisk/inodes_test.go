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
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// fewInodes mounts a file system for pools of a kind that has some thousand inodes and plenty of bytes.
func fewInodes(t *testing.T, k kind) string {
	t.Helper()
	const megabytes = 320
	options := map[string][]string{"ext4": {"-N", "2000"}, "xfs": {"-i", "maxpct=1"}}[k.fsType]
	if k.backend != local.ProjectQuota {
		return roottest.FileSystem(t, k.fsType, megabytes, options...)
	}
	roottest.Quotas(t, quota.Enforced.String())
	if k.fsType == "ext4" {
		options = append(options, "-O", "quota,project")
	}
	return roottest.QuotaFileSystem(t, k.fsType, megabytes, options...)
}

// useUpInodes makes files in a directory until the disk takes no further one.
func useUpInodes(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	here, err := os.Open(dir)
	must(t, err)
	defer here.Close()
	names, err := here.Readdirnames(-1)
	must(t, err)
	for n := len(names); ; n++ {
		err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		must(t, err)
	}
}

var inodeKinds = []kind{imageOnExt4, imageOnXFS, quotaOnExt4, quotaOnXFS}

// retained is a comment as long as one of a volume that is kept.
var retained = strings.Repeat("retained since the claim was deleted ", 10)

// TestDiskWithoutInodes: volumes are retained and deleted on a disk that has bytes and no inode, also while each inode
// that comes free is taken at once. No volume is made there, and none is promised.
func TestDiskWithoutInodes(t *testing.T) {
	each(t, inodeKinds, func(t *testing.T, k kind) {
		disk := fewInodes(t, k)
		p := newPoolOn(t, disk, k)
		stranger := filepath.Join(disk, "stranger")
		var records []local.Record
		for i := range 4 {
			records = append(records, p.make(record(fmt.Sprintf("pvc-%d", i), 8*mib)))
		}
		useUpInodes(t, stranger)
		if _, free, err := p.Look(); err != nil || free > mib {
			t.Errorf("%d bytes are free, %v, where no file can be made", free, err)
		}
		wants(t, p.tryMake(record("pvc-more", 8*mib)), volume.ErrNoSpace)
		must(t, p.gone("pvc-more"))
		for i := range records {
			records[i].Comment = retained
			must(t, p.Save(records[i]))
			useUpInodes(t, stranger)
		}
		p.reopen()
		for _, r := range records {
			useUpInodes(t, stranger)
			if got, err := p.Load(r.Name); err != nil || got != r {
				t.Errorf("loaded %+v, %v", got, err)
			}
			p.delete(r)
			must(t, p.gone(r.Name))
		}
		must(t, p.Erase(t.Context()))
		must(t, os.RemoveAll(stranger))
		p.make(record("pvc-more", 8*mib))
	})
}

// TestCrashWithoutInodes ends the daemon before each change of a record for which there is no inode.
func TestCrashWithoutInodes(t *testing.T) {
	each(t, []kind{imageOnExt4, imageOnXFS}, func(t *testing.T, k kind) {
		disk := fewInodes(t, k)
		p := newPoolOn(t, disk, k)
		before := p.make(record("pvc-1", 8*mib))
		after := before
		after.Comment = retained
		useUpInodes(t, filepath.Join(disk, "stranger"))
		is := func(want local.Record) error {
			got, err := p.Load(want.Name)
			if err == nil && got != want {
				err = fmt.Errorf("loaded %+v", got)
			}
			return err
		}
		p.crashes(func() error { return is(before) }, func() error { return p.Save(after) }, func() error { return is(after) },
			func() error { return p.Save(before) })
	})
}

// TestEarlierPoolWithoutInodes: so it is in a pool of an earlier version, whose disk has lost its last inode before this one.
func TestEarlierPoolWithoutInodes(t *testing.T) {
	each(t, []kind{imageOnExt4, quotaOnExt4}, func(t *testing.T, k kind) {
		disk := fewInodes(t, k)
		p := newPoolOn(t, disk, k)
		r := p.make(record("pvc-1", 8*mib))
		must(t, os.Remove(filepath.Join(p.path, recordsName, spareName)))
		useUpInodes(t, filepath.Join(disk, "stranger"))
		p.reopen()
		r.Comment = retained
		must(t, p.Save(r))
		p.delete(r)
		must(t, p.gone(r.Name))
		must(t, os.RemoveAll(filepath.Join(disk, "stranger")))
		p.make(record("pvc-2", 8*mib))
		p.reopen()
		if st, err := os.Stat(filepath.Join(p.path, reserveName)); err != nil || st.Size() != reserveSize {
			t.Errorf("what is set aside for the next time: %v, %v", st, err)
		}
	})
}

// TestPodUsesUpItsInodes: a pod that makes file after file is stopped where its volume's share of the disk's inodes ends.
// Other volumes are made, retained and deleted meanwhile.
func TestPodUsesUpItsInodes(t *testing.T) {
	each(t, []kind{quotaOnExt4, quotaOnXFS}, func(t *testing.T, k kind) {
		p := newPoolOn(t, fewInodes(t, k), k)
		r, other := p.make(record("pvc-1", 16*mib)), p.make(record("pvc-2", 16*mib))
		path := p.stage(r)
		fill := func() int64 {
			if _, err := roottest.AsPod(path, "sh", "-c", "seq 1 9999 | xargs touch 2>/dev/null"); err == nil {
				t.Fatal("the pod is not stopped")
			}
			used, _ := p.ids.Of(p.projectOf(r.Name))
			return used.Used.Inodes
		}
		few := fill()
		if few < 2 || few > 1024 {
			t.Errorf("a volume of 16 of the disk's 320 MiB has %d inodes", few)
		}
		p.make(record("pvc-3", 16*mib))
		other.Comment = retained
		must(t, p.Save(other))
		p.delete(other)
		must(t, p.Erase(t.Context()))
		p.reopen()
		if stats, err := p.Stats(r, path); err != nil || stats.Space.Total.Inodes != few || stats.Space.Free.Inodes != 0 {
			t.Errorf("stats %+v, %v, want those of %d inodes", stats.Space, err, few)
		}
		r.Size *= 2
		must(t, errors.Join(p.Save(r), p.Grow(t.Context(), r)))
		more := fill()
		if more < 2*few || more > 2*few+1 { // a part of one is rounded
			t.Errorf("with twice the bytes the volume has %d inodes, and had %d", more, few)
		}
		must(t, p.ids.Kernel.SetLimit(p.projectOf(r.Name), volume.Size{Bytes: r.Size})) // as root of a pod may
		_, err := p.Stats(r, path)
		must(t, err)
		if used, _ := p.ids.Of(p.projectOf(r.Name)); used.Limit.Inodes != more {
			t.Errorf("the limit that was taken away is %d inodes now, want %d", used.Limit.Inodes, more)
		}
	})
}

// TestPodEvadesItsInodes: a pod that gives a directory another project uses up all inodes of the disk. Its volume and
// others are retained and deleted all the same, while it takes each inode that comes free. Then others are made again.
func TestPodEvadesItsInodes(t *testing.T) {
	each(t, []kind{quotaOnExt4, quotaOnXFS}, func(t *testing.T, k kind) {
		p := newPoolOn(t, fewInodes(t, k), k)
		r, other := p.make(record("pvc-1", 16*mib)), p.make(record("pvc-2", 16*mib))
		path := p.stage(r)
		fill := func() {
			_, err := roottest.AsPod(path, "sh", "-c",
				"mkdir -p free && chattr -p 0 free && cd free && ! seq 1 9999 | xargs touch 2>/dev/null")
			must(t, err)
		}
		fill()
		wants(t, p.tryMake(record("pvc-3", 16*mib)), volume.ErrNoSpace)
		must(t, p.gone("pvc-3"))
		other.Comment = retained
		must(t, p.Save(other))
		fill()
		p.delete(other)
		must(t, p.gone(other.Name))
		must(t, p.Erase(t.Context()))
		fill()
		p.unstage(r, path)
		r.Comment = retained
		must(t, p.Save(r))
		p.delete(r)
		must(t, p.gone(r.Name))
		must(t, p.Erase(t.Context()))
		p.make(record("pvc-3", 16*mib))
	})
}

// TestVolumeOfAnEarlierVersion has no limit of inodes, and gets none: it may have more already.
func TestVolumeOfAnEarlierVersion(t *testing.T) {
	each(t, []kind{quotaOnExt4, quotaOnXFS}, func(t *testing.T, k kind) {
		p := newPoolOn(t, fewInodes(t, k), k)
		r := p.make(record("pvc-1", 16*mib))
		content := []byte(fmt.Sprintf(`{"version":1,"name":"pvc-1","state":"ready","size":%d,"created":"2023-11-14T22:13:20Z","project":%d}`,
			r.Size, p.projectOf(r.Name)))
		must(t, p.ids.Kernel.SetLimit(p.projectOf(r.Name), volume.Size{Bytes: r.Size}))
		must(t, os.WriteFile(filepath.Join(p.path, recordsName, "pvc-1"), content, 0o600))
		p.reopen()
		r.Size *= 2
		must(t, errors.Join(p.Save(r), p.Grow(t.Context(), r)))
		p.stage(r)
		p.reopen()
		if used, _ := p.ids.Of(p.projectOf(r.Name)); used.Limit != (volume.Size{Bytes: r.Size}) {
			t.Errorf("the limit is %+v, want %d bytes", used.Limit, r.Size)
		}
	})
}
