package localdisk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// kind is a way to keep volumes on a file system.
type kind struct {
	name, fsType string
	backend      local.Backend
}

var (
	imageOnExt4  = kind{"image on ext4", "ext4", local.Image}
	imageOnXFS   = kind{"image on xfs", "xfs", local.Image}
	imageOnBtrfs = kind{"image on btrfs", "btrfs", local.Image}
	quotaOnXFS   = kind{"quota on xfs", "xfs", local.ProjectQuota}
	quotaOnExt4  = kind{"quota on ext4", "ext4", local.ProjectQuota}
	onBtrfs      = kind{"btrfs", "btrfs", local.Btrfs}
)

// each runs a test with pools of some kinds.
func each(t *testing.T, kinds []kind, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(strings.ReplaceAll(k.name, " ", "-"), func(t *testing.T) { test(t, k) })
	}
}

var (
	copying = []kind{imageOnXFS, imageOnBtrfs, onBtrfs}
	all     = []kind{imageOnExt4, imageOnXFS, imageOnBtrfs, quotaOnXFS, quotaOnExt4, onBtrfs}
)

const mib = 1 << 20

// newDisk mounts a file system for pools of a kind.
func newDisk(t *testing.T, k kind) string {
	t.Helper()
	return diskOf(t, k, 512)
}

func diskOf(t *testing.T, k kind, megabytes int) string {
	t.Helper()
	if k.backend == local.ProjectQuota {
		return quotaDisk(t, k.fsType)
	}
	disk := roottest.FileSystem(t, k.fsType, megabytes)
	if k.backend == local.Btrfs {
		dir, err := os.Open(disk)
		must(t, err)
		defer dir.Close()
		if err := simpleQuotas(dir); errors.Is(err, volume.ErrInvalid) {
			roottest.Lacks(t, "Linux 6.7", err)
		}
	}
	return disk
}

// quotaDisk returns an empty directory of a file system with project quotas. Most kernels of build machines have none.
func quotaDisk(t *testing.T, fsType string) string {
	t.Helper()
	for _, dir := range roottest.Quotas(t, quota.Enforced.String()) {
		disk, err := os.MkdirTemp(dir, "disk")
		must(t, err)
		file, err := os.Open(disk)
		must(t, err)
		here, err := mount.Locate(file)
		must(t, errors.Join(err, file.Close()))
		if here.FSType == fsType {
			t.Cleanup(func() {
				if err := os.RemoveAll(disk); err != nil {
					t.Error(err)
				}
			})
			return disk
		}
		must(t, os.Remove(disk))
	}
	roottest.Lacks(t, "project quotas", "no ", fsType, " has them")
	return ""
}

// testPool is a pool that is opened again at will.
type testPool struct {
	*Pool
	t    *testing.T
	path string
	kind kind
}

func newPool(t *testing.T, k kind) *testPool {
	t.Helper()
	return newPoolOn(t, newDisk(t, k), k)
}

// copyingPool is a pool that makes copies: on btrfs one of an earlier version, which has some.
func copyingPool(t *testing.T, k kind) *testPool {
	t.Helper()
	p := newPool(t, k)
	p.found.Copies = true
	return p
}

func newPoolOn(t *testing.T, disk string, k kind) *testPool {
	t.Helper()
	p := &testPool{t: t, path: filepath.Join(disk, "pool"), kind: k}
	p.open()
	t.Cleanup(func() {
		if p.Pool != nil {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

func (p *testPool) open() {
	p.t.Helper()
	pool, err := Open(p.path, Config{Class: "test", Backend: p.kind.backend, Log: logr.Discard()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Pool = pool
}

// reopen is what the end of a daemon and the start of the next one do.
func (p *testPool) reopen() {
	p.t.Helper()
	must(p.t, p.Close())
	p.open()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
}

func record(name string, size int64) local.Record {
	return local.Record{Name: name, State: local.Making, Size: size, Created: time.Unix(1_700_000_000, 0).UTC()}
}

// make makes a volume or a snapshot as the daemon does.
func (p *testPool) make(r local.Record) local.Record {
	p.t.Helper()
	must(p.t, p.tryMake(r))
	r.State = local.Ready
	return r
}

func (p *testPool) tryMake(r local.Record) error {
	r.State = local.Making
	if err := p.Save(r); err != nil {
		return err
	}
	if err := p.Make(context.Background(), r); err != nil {
		return err
	}
	r.State = local.Ready
	return p.Save(r)
}

func (p *testPool) delete(r local.Record) {
	p.t.Helper()
	must(p.t, p.tryDelete(r))
}

func (p *testPool) tryDelete(r local.Record) error {
	r.State = local.Deleting
	return errors.Join(p.Save(r), p.Trash(r), p.Forget(r.Name))
}

// target is a staging path.
func target(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "staging")
	roottest.UnmountAtEnd(t, path)
	roottest.UnmountAtEnd(t, filepath.Join(path, DeviceFile))
	return path
}

// stage stages a volume, which is unstaged at the end of the test.
func (p *testPool) stage(r local.Record, options ...string) string {
	p.t.Helper()
	path := target(p.t)
	must(p.t, p.Stage(p.t.Context(), r, path, options, false))
	must(p.t, p.Grow(p.t.Context(), r))
	locations := p.Locations
	p.t.Cleanup(func() {
		if err := locations.Unstage(context.Background(), r.Name, path); err != nil {
			p.t.Error(err)
		}
	})
	return path
}

func (p *testPool) unstage(r local.Record, path string) {
	p.t.Helper()
	must(p.t, p.Locations.Unstage(p.t.Context(), r.Name, path))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func reads(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("%s holds %q, %v, want %q", path, got, err, want)
	}
}

// mounted returns where a volume is mounted.
func (p *testPool) mounted(name string) (targets []string) {
	p.t.Helper()
	table, err := attach.Table()
	must(p.t, err)
	found, err := p.Mounts(table, name)
	must(p.t, err)
	for _, m := range found {
		targets = append(targets, m.Target)
		if of, ok := p.Locations.NameOf(m); !ok || of != name {
			p.t.Errorf("the mount at %s is of %q, %t, want %s", m.Target, of, ok, name)
		}
	}
	return targets
}

// loops returns the loop devices of a volume of this pool. Other pools on the machine may have one of that name.
func (p *testPool) loops(name string) ([]string, error) {
	return loopNames(filepath.Join(p.path, volumesName, name, imageName))
}

// canGrow reports whether this process may grow a volume that is mounted: an ext4 takes a capability.
func canGrow(t *testing.T, k kind) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	must(t, unix.Capget(&header, &sets[0]))
	return k.backend != local.Image || sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func sizeFor(k kind) int64 {
	if k.backend == local.Image {
		return 32 * mib
	}
	return 16 * mib
}

// TestVolumeOfAPool lives through all that happens to one, in pools of each kind.
func TestVolumeOfAPool(t *testing.T) {
	each(t, all, func(t *testing.T, k kind) {
		p := newPool(t, k)
		found := p.Describe()
		if found.Backend != k.backend || found.FSType != k.fsType || found.Failed != "" || found.Class != "test" {
			t.Fatalf("%+v", found)
		}
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		must(t, p.Stage(t.Context(), r, path, nil, false)) // again
		write(t, path+"/file", "content")
		if got, err := p.loops("pvc-1"); err != nil || (len(got) == 1) != (k.backend == local.Image) {
			t.Fatalf("loop devices %q, %v", got, err)
		}
		if got := p.mounted("pvc-1"); !slices.Equal(got, []string{path}) {
			t.Fatalf("mounted at %q, want %q", got, path)
		}
		p.reopen()
		if got := p.mounted("pvc-1"); !slices.Equal(got, []string{path}) {
			t.Fatalf("mounted at %q after a restart, want %q", got, path)
		}
		stats, err := p.Stats(r, path)
		if err != nil || stats.Abnormal || stats.Space.Total.Bytes < r.Size*3/4 || stats.Space.Total.Bytes > r.Size ||
			stats.Space.Free.Bytes <= 0 || stats.Space.Free.Bytes > stats.Space.Total.Bytes {
			t.Fatalf("stats %+v, %v", stats, err)
		}
		if k.backend != local.Image {
			p.changesLimit(r, path)
		}
		if canGrow(t, k) {
			r.Size *= 2
			must(t, p.Grow(t.Context(), r))
			must(t, p.Grow(t.Context(), r))
			must(t, p.Save(r))
			if stats, err = p.Stats(r, path); err != nil || stats.Space.Total.Bytes < r.Size*3/4 {
				t.Fatalf("stats %+v, %v, want those of %d bytes", stats, err, r.Size)
			}
		}
		reads(t, path+"/file", "content")
		p.unstage(r, path)
		p.unstage(r, path)
		if got := p.mounted("pvc-1"); got != nil {
			t.Fatalf("mounted at %q after unstage", got)
		}
		if got, err := p.loops("pvc-1"); err != nil || got != nil {
			t.Fatalf("%q are left, %v", got, err)
		}
		p.reopen()
		loaded, err := p.Load("pvc-1")
		if err != nil || loaded != r {
			t.Fatalf("loaded %+v, %v, want %+v", loaded, err, r)
		}
		path = p.stage(r)
		reads(t, path+"/file", "content")
		p.unstage(r, path)
		p.delete(r)
		must(t, p.tryDelete(r))
		must(t, p.Erase(t.Context()))
		if left, err := p.dir.TrashSize(); err != nil || left != 0 {
			t.Fatalf("%d left in the trash, %v", left, err)
		}
		if _, err := p.Load("pvc-1"); !errors.Is(err, volume.ErrNotFound) {
			t.Fatal(err)
		}
		if all, err := p.Records(); err != nil || len(all) != 0 {
			t.Fatalf("records %+v, %v", all, err)
		}
	})
}

// changesLimit changes the limit of a volume as root of a container may that has a mount of the disk. It is set again
// when the kubelet asks for the volume's statistics, and when the volume is staged.
func (p *testPool) changesLimit(r local.Record, path string) {
	p.t.Helper()
	project, limit := p.projectOf(r.Name), func() volume.Size { q, _ := p.ids.Of(p.projectOf(r.Name)); return q.Limit }
	for _, other := range []int64{0, r.Size * 100, r.Size / 2} {
		for what, look := range map[string]func() error{
			"stats": func() error { _, err := p.Stats(r, path); return err },
			"stage": func() error { return p.Stage(p.t.Context(), r, path, nil, false) },
		} {
			must(p.t, p.ids.Kernel.SetLimit(project, volume.Size{Bytes: other}))
			must(p.t, look())
			if got := limit(); got.Bytes < r.Size || got.Bytes > r.Size+mib/16 {
				p.t.Errorf("%s: the limit of %d bytes was changed to %d, and is %d now", what, r.Size, other, got.Bytes)
			}
		}
	}
}

// TestLimitOfAPool fills a volume.
func TestLimitOfAPool(t *testing.T) {
	each(t, all, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		must(t, os.Chmod(path, 0o777)) // the top of a new file system is root's
		// Root may write more than the limit of an ext4.
		out, err := roottest.AsPod(path, "dd", "if=/dev/zero", "of=big", "bs=1M", "count=64", "conv=fsync")
		st, stat := os.Stat(path + "/big")
		must(t, stat)
		if err == nil || st.Size() < r.Size/4 || st.Size() > r.Size {
			t.Fatalf("%d bytes went into a volume of %d: %s, %v", st.Size(), r.Size, out, err)
		}
	})
}

// TestBlockVolume has no file system.
func TestBlockVolume(t *testing.T) {
	each(t, []kind{imageOnXFS, imageOnExt4}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := record("pvc-1", 8*mib)
		r.Block = true
		r = p.make(r)
		path := p.stage(r)
		must(t, p.Stage(t.Context(), r, path, nil, false))
		device := filepath.Join(path, DeviceFile)
		if got := p.mounted("pvc-1"); !slices.Equal(got, []string{device}) {
			t.Fatalf("mounted at %q, want %q", got, device)
		}
		file, err := os.OpenFile(device, os.O_RDWR, 0)
		must(t, err)
		_, err = file.WriteAt([]byte("raw"), 4*mib)
		must(t, errors.Join(err, file.Sync()))
		// What it holds may not go while a process has it open.
		wants(t, p.Locations.Unstage(t.Context(), "pvc-1", path), volume.ErrBusy)
		must(t, file.Close())
		r.Size *= 2
		must(t, p.Stage(t.Context(), r, path, nil, false))
		must(t, p.Grow(t.Context(), r))
		stats, err := p.Stats(r, path)
		if err != nil || stats.Space.Total.Bytes != r.Size {
			t.Fatalf("stats %+v, %v", stats, err)
		}
		p.reopen()
		file, err = os.Open(filepath.Join(path, DeviceFile))
		must(t, err)
		content := make([]byte, 3)
		if _, err := file.ReadAt(content, 4*mib); err != nil || string(content) != "raw" {
			t.Fatalf("%q, %v", content, err)
		}
		must(t, file.Close())
		p.unstage(r, path)
		if got, err := p.loops("pvc-1"); err != nil || got != nil {
			t.Fatalf("%q are left, %v", got, err)
		}
		p.delete(r)
	})
}

// TestNothingInUseIsTouched tries to remove what is in use.
func TestNothingInUseIsTouched(t *testing.T) {
	p := newPool(t, imageOnXFS)
	r := p.make(record("pvc-1", 32*mib))
	path := p.stage(r)
	write(t, path+"/file", "content")
	if err := p.Trash(r); err == nil {
		t.Fatal("an image that is mounted went to the trash")
	}
	if err := p.Release("pvc-1"); !errors.Is(err, volume.ErrBusy) {
		t.Fatal(err)
	}
	if err := p.Make(t.Context(), r); err == nil {
		t.Fatal("an image that is mounted was made anew")
	}
	reads(t, path+"/file", "content")
	p.unstage(r, path)
	p.delete(r)
}

// TestCopiesInAPool takes snapshots and clones, also of volumes in use.
func TestCopiesInAPool(t *testing.T) {
	each(t, copying, func(t *testing.T, k kind) {
		p := copyingPool(t, k)
		if !p.Describe().Copies {
			t.Fatal("the file system cannot share blocks")
		}
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		write(t, path+"/file", "before")
		s := record("snap-1", r.Size)
		s.Of = "pvc-1"
		s = p.make(s)
		write(t, path+"/file", "after")
		restored := record("pvc-2", r.Size)
		if canGrow(t, k) {
			restored.Size *= 2
		}
		restored.Source.Snapshot = "snap-1"
		restored = p.make(restored)
		clone := record("pvc-3", r.Size)
		clone.Source.Volume = "pvc-1"
		clone = p.make(clone)
		small := record("pvc-4", r.Size/2)
		small.Source.Volume = "pvc-1"
		if err := p.tryMake(small); err == nil {
			t.Fatal("a clone that is smaller than its origin was made")
		}
		must(t, p.tryDelete(small))
		second, third := p.stage(restored), p.stage(clone)
		reads(t, second+"/file", "before")
		reads(t, third+"/file", "after")
		if k.backend == local.Image {
			if stats, err := p.Stats(restored, second); err != nil || stats.Space.Total.Bytes < restored.Size*3/4 {
				t.Fatalf("stats of the larger copy: %+v, %v", stats, err)
			}
		}
		// Each goes its own way.
		write(t, second+"/file", "second")
		write(t, third+"/file", "third")
		reads(t, path+"/file", "after")
		p.unstage(r, path)
		p.delete(r)
		p.delete(s)
		must(t, p.Erase(t.Context()))
		reads(t, second+"/file", "second")
		reads(t, third+"/file", "third")
	})
}

// TestOpenOfAPool makes pools of empty directories only.
func TestOpenOfAPool(t *testing.T) {
	dir := roottest.FileSystem(t, "ext4", 16)
	cfg := Config{Backend: local.Image, Log: logr.Discard()}
	path := filepath.Join(dir, "pool")
	p, err := Open(path, cfg)
	must(t, err)
	uuid := p.Describe().UUID
	_, err = Open(path, cfg)
	wants(t, err, volume.ErrUnavailable) // another process has it
	must(t, p.Close())

	cfg.Expect = uuid
	p, err = Open(path, cfg)
	must(t, err)
	if p.Describe().UUID != uuid {
		t.Fatalf("UUID %s, want %s", p.Describe().UUID, uuid)
	}
	must(t, p.Close())
	for name, prepare := range map[string]func(path string) error{
		"nothing there":     func(string) error { return nil },
		"empty":             func(path string) error { return os.Mkdir(path, 0o700) },
		"something else":    func(path string) error { return os.MkdirAll(path+"/data", 0o700) },
		"a fresh ext4":      func(path string) error { return os.MkdirAll(path+"/lost+found", 0o700) },
		"an unfinished one": func(path string) error { return os.MkdirAll(path+"/.new-x", 0o700) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			other := filepath.Join(t.TempDir(), "pool")
			must(t, prepare(other))
			_, err := Open(other, cfg)
			wants(t, err, volume.ErrUnavailable)
			if _, err := os.Stat(other + "/" + poolFile); err == nil {
				t.Fatal("a pool was made where another one was expected")
			}
		})
	}
	other, err := Open(filepath.Join(dir, "other"), Config{Backend: local.Image, Log: logr.Discard()})
	must(t, err)
	must(t, other.Close())
	_, err = Open(filepath.Join(dir, "other"), cfg)
	wants(t, err, volume.ErrConflict)
	cfg.Expect, cfg.Backend = "", local.ProjectQuota
	_, err = Open(path, cfg)
	wants(t, err, volume.ErrConflict)
	cfg.Backend = local.Auto
	write(t, filepath.Join(dir, "file"), "a person's")
	_, err = Open(dir, cfg)
	wants(t, err, volume.ErrInvalid)
	_, err = Open(filepath.Join(dir, "new"), Config{Backend: local.Btrfs, Log: logr.Discard()})
	wants(t, err, volume.ErrInvalid)
}

// TestNoNewPoolOnADiskOfTheNode makes none where no disk seems to be mounted, and opens one that is there.
func TestNoNewPoolOnADiskOfTheNode(t *testing.T) {
	own, disk := roottest.FileSystem(t, "ext4", 16), roottest.FileSystem(t, "ext4", 16)
	cfg := Config{Backend: local.Image, NotOn: []string{filepath.Join(own, "missing"), own}, Log: logr.Discard()}
	path := filepath.Join(own, "above", "pool")
	_, err := Open(path, cfg)
	wants(t, err, volume.ErrInvalid)
	if !strings.Contains(err.Error(), "on-root-disk") {
		t.Errorf("%v does not say what to do", err)
	}
	if names, err := os.ReadDir(path); err != nil || len(names) > 0 {
		t.Errorf("in the directory there is %v, %v", names, err)
	}
	p, err := Open(filepath.Join(disk, "pool"), cfg)
	must(t, err)
	must(t, p.Close())
	p, err = Open(path, Config{Backend: local.Image, Log: logr.Discard()})
	must(t, err)
	must(t, p.Close())
	p, err = Open(path, cfg)
	must(t, err)
	must(t, p.Close())
}

// TestAutoBackend takes what fits the disk.
func TestAutoBackend(t *testing.T) {
	for _, k := range []kind{imageOnExt4, imageOnXFS, quotaOnXFS, quotaOnExt4, onBtrfs} {
		t.Run(strings.ReplaceAll(k.name, " ", "-"), func(t *testing.T) {
			p, err := Open(newDisk(t, k), Config{Log: logr.Discard()})
			must(t, err)
			defer p.Close()
			if got := p.Describe().Backend; got != k.backend {
				t.Errorf("backend %s, want %s", got, k.backend)
			}
		})
	}
}

// TestPoolsOnOneDisk never give two volumes one project.
func TestPoolsOnOneDisk(t *testing.T) {
	each(t, []kind{quotaOnXFS, quotaOnExt4, onBtrfs}, func(t *testing.T, k kind) {
		dir := newDisk(t, k)
		projects := NewProjects(quota.LocalRange, nil, nil, logr.Discard())
		seen := map[uint32]bool{}
		for _, name := range []string{"a", "b"} {
			pool, err := Open(filepath.Join(dir, name), Config{Backend: k.backend, Projects: projects, Log: logr.Discard()})
			must(t, err)
			defer pool.Close()
			p := &testPool{Pool: pool, t: t}
			for _, volume := range []string{"pvc-1", "pvc-2"} {
				p.make(record(volume, mib))
				project := p.projectOf(volume)
				if project < quota.LocalRange.First || seen[project] {
					t.Fatalf("project %d of %s/%s, after %v", project, name, volume, seen)
				}
				seen[project] = true
			}
			must(t, p.tryMake(record("pvc-1", mib))) // anew, as after a crash
			if project := p.projectOf("pvc-1"); seen[project] {
				t.Fatalf("made anew with project %d, which is in use", project)
			}
			seen[p.projectOf("pvc-1")] = true
		}
	})
}

// TestFullPool says that it is full, and leaves nothing.
func TestFullPool(t *testing.T) {
	each(t, []kind{imageOnExt4, imageOnXFS, imageOnBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", 64*mib))
		err := p.tryMake(record("pvc-2", 4096*mib))
		wants(t, err, volume.ErrNoSpace)
		must(t, p.tryDelete(record("pvc-2", 0)))
		path := p.stage(r)
		write(t, path+"/file", "content")
		large := r
		large.Size = 4096 * mib
		wants(t, p.Grow(t.Context(), large), volume.ErrNoSpace)
		reads(t, path+"/file", "content")
		must(t, p.Erase(t.Context()))
		p.delete(p.make(record("pvc-3", 64*mib)))
	})
}
