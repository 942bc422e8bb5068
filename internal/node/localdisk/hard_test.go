package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// setAside returns how many bytes of the disk the image of a volume has.
func (p *testPool) setAside(name string) int64 {
	p.t.Helper()
	var st unix.Stat_t
	must(p.t, unix.Stat(filepath.Join(p.path, volumesName, name, imageName), &st))
	return st.Blocks * 512
}

// TestImageLargerThanHalfOfTheDisk is made, and grows: XFS demands as many free blocks as the range is long in which
// blocks are set aside, though they are all there.
func TestImageLargerThanHalfOfTheDisk(t *testing.T) {
	each(t, []kind{imageOnExt4, imageOnXFS}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		_, free, err := p.Look()
		must(t, err)
		r := p.make(record("pvc-1", free*6/10/mib*mib))
		r.Size = free * 8 / 10 / mib * mib
		must(t, p.Grow(t.Context(), r))
		if got := p.setAside("pvc-1"); got < r.Size {
			t.Fatalf("the image has %d bytes of the disk, want %d", got, r.Size)
		}
	})
}

// TestImageKeepsItsBlocks whatever mkfs, the file system and a pod discard.
func TestImageKeepsItsBlocks(t *testing.T) {
	each(t, []kind{imageOnExt4, imageOnXFS}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", 64*mib))
		if got := p.setAside("pvc-1"); got < r.Size {
			t.Fatalf("a new image has %d bytes of the disk, want %d", got, r.Size)
		}
		path := p.stage(r)
		must(t, os.WriteFile(path+"/file", make([]byte, 16*mib), 0o600))
		unix.Sync()
		must(t, os.Remove(path+"/file"))
		unix.Sync()
		if out, err := roottest.Run("fstrim", path); err == nil {
			t.Errorf("fstrim works: %s", out)
		}
		p.unstage(r, path)
		if got := p.setAside("pvc-1"); got < r.Size {
			t.Fatalf("the image has %d bytes of the disk after fstrim, want %d", got, r.Size)
		}
		b := record("pvc-2", 16*mib)
		b.Block = true
		b = p.make(b)
		device := filepath.Join(p.stage(b), DeviceFile)
		if out, err := roottest.Run("blkdiscard", device); err == nil {
			t.Errorf("blkdiscard works: %s", out)
		}
		if out, err := roottest.Run("blkdiscard", "--zeroout", device); err != nil {
			t.Error(out, err)
		}
		if got := p.setAside("pvc-2"); got < b.Size {
			t.Fatalf("the image has %d bytes of the disk after blkdiscard, want %d", got, b.Size)
		}
	})
}

// TestPodLeavesNoQuotaGroup makes a subvolume in a volume of btrfs, as any pod may, and fills that.
func TestPodLeavesNoQuotaGroup(t *testing.T) {
	p := newPool(t, onBtrfs)
	r := p.make(record("pvc-1", 16*mib))
	path := p.stage(r)
	if out, err := roottest.AsPod(path, "btrfs", "subvolume", "create", "inner"); err != nil {
		t.Fatal(out, err)
	}
	out, err := roottest.AsPod(path, "dd", "if=/dev/zero", "of=inner/big", "bs=1M", "count=64", "conv=fsync")
	if err == nil {
		t.Fatalf("64 MiB went into a volume of 16: %s", out)
	}
	if stats, err := p.Stats(r, path); err != nil || stats.Used.Bytes > r.Size {
		t.Errorf("stats %+v, %v", stats, err)
	}
	p.unstage(r, path)
	p.delete(r)
	must(t, p.Erase(t.Context()))
	if left, err := p.dir.TrashSize(); err != nil || left != 0 {
		t.Fatalf("%d left in the trash, %v", left, err)
	}
}

// TestSnapshotWhileAPodWrites is one of a single moment: of two files that are written in turn, none is two behind.
func TestSnapshotWhileAPodWrites(t *testing.T) {
	each(t, copying, func(t *testing.T, k kind) {
		p := copyingPool(t, k)
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			ended <- func() error {
				for n := 0; ctx.Err() == nil; n++ {
					for _, name := range []string{"/a", "/b"} {
						if err := os.WriteFile(path+name+".new", []byte(fmt.Sprint(n)), 0o600); err != nil {
							return err
						}
						if err := os.Rename(path+name+".new", path+name); err != nil {
							return err
						}
					}
					if n == 10 {
						close(begun)
					}
				}
				return nil
			}()
		}()
		<-begun
		for n := range 5 {
			s := record(fmt.Sprint("snap-", n), r.Size)
			s.Of = r.Name
			s = p.make(s)
			c := record(fmt.Sprint("pvc-", n+2), r.Size)
			c.Source.Snapshot = s.Name
			c = p.make(c)
			copied := p.stage(c)
			var a, b int
			for name, to := range map[string]*int{"/a": &a, "/b": &b} {
				content, err := os.ReadFile(copied + name)
				must(t, err)
				if _, err := fmt.Sscan(string(content), to); err != nil {
					t.Fatalf("%s holds %q: %v", name, content, err)
				}
			}
			if a != b && a != b+1 {
				t.Fatalf("of different moments: %d and %d", a, b)
			}
			p.unstage(c, copied)
			p.delete(c)
			p.delete(s)
			must(t, p.Erase(t.Context()))
		}
		stop()
		must(t, <-ended)
	})
}

// TestDamagedRecord is set aside; the data of its volume stays.
func TestDamagedRecordOfAPool(t *testing.T) {
	p := newPool(t, imageOnExt4)
	r := p.make(record("pvc-1", 8*mib))
	other := p.make(record("pvc-2", 8*mib))
	must(t, os.WriteFile(filepath.Join(p.path, recordsName, "pvc-1"), []byte("{"), 0o600))
	p.reopen()
	records, err := p.Records()
	if err != nil || len(records) != 1 || records[0] != other {
		t.Fatalf("records %+v, %v", records, err)
	}
	_, err = p.Load("pvc-1")
	wants(t, err, volume.ErrNotFound)
	if got := p.setAside("pvc-1"); got < r.Size {
		t.Fatal("the data is gone")
	}
	names, err := namesIn(p.records)
	must(t, err)
	aside := 0
	for _, name := range names {
		if strings.HasPrefix(name, damagedPrefix) {
			aside++
		}
	}
	if aside != 1 {
		t.Fatalf("names %q", names)
	}
	later := fmt.Sprintf(`{"version":%d,"name":"pvc-3"}`, formatVersion+1)
	must(t, os.WriteFile(filepath.Join(p.path, recordsName, "pvc-3"), []byte(later), 0o600))
	if _, err := p.Load("pvc-3"); err == nil || errors.Is(err, volume.ErrNotFound) {
		t.Fatalf("a record of a later version: %v", err)
	}
	p.reopen() // the others are of use without it
	if records, err = p.Records(); err == nil || len(records) != 1 {
		t.Fatalf("records %+v, %v", records, err)
	}
}

// TestLookAtADisk tells a pool from its path alone, and a disk that does not work from one that does.
func TestLookAtADisk(t *testing.T) {
	p := newPool(t, imageOnXFS)
	total, free, err := p.Look()
	if err != nil || total < 256*mib || free <= 0 || free >= total {
		t.Fatal(total, free, err)
	}
	must(t, unix.Mount("katbox-test", p.path, "tmpfs", 0, ""))
	_, _, covered := p.Look()
	_, err = Open(p.path, Config{Expect: p.Describe().UUID, Log: logr.Discard()})
	must(t, unix.Unmount(p.path, 0))
	wants(t, covered, volume.ErrUnavailable)
	wants(t, err, volume.ErrUnavailable)
	if _, _, err = p.Look(); err != nil {
		t.Fatal(err)
	}
	if out, err := roottest.Run("xfs_io", "-x", "-c", "shutdown", filepath.Dir(p.path)); err != nil {
		t.Fatal(out, err)
	}
	_, _, err = p.Look()
	wants(t, err, volume.ErrUnavailable)
}

// TestUnstageWithoutThePool takes a volume away whose pool nobody has open.
func TestUnstageWithoutThePool(t *testing.T) {
	each(t, []kind{imageOnXFS, onBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := p.make(record("pvc-1", sizeFor(k)))
		other := p.make(record("pvc-2", sizeFor(k)))
		path, second := target(t), target(t)
		must(t, p.Stage(t.Context(), r, path, []string{"noexec"}, false))
		must(t, p.Stage(t.Context(), other, second, nil, true))
		if err := os.WriteFile(second+"/file", nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Fatalf("write to what is staged read-only: %v", err)
		}
		wants(t, p.Stage(t.Context(), other, second, nil, false), volume.ErrConflict)
		wants(t, p.Stage(t.Context(), other, path, nil, false), attach.ErrNotOurs)
		wants(t, p.Locations.Unstage(t.Context(), "pvc-2", path), attach.ErrNotOurs)
		must(t, p.Close())
		p.Pool = nil
		locations := NewLocations(p.path) // a daemon that starts without the disk
		for range 2 {
			must(t, locations.Unstage(t.Context(), "pvc-1", path))
			must(t, locations.Unstage(t.Context(), "pvc-2", second))
		}
		for _, name := range []string{"pvc-1", "pvc-2"} {
			if left, err := p.loops(name); err != nil || left != nil {
				t.Errorf("%q are left, %v", left, err)
			}
		}
	})
}

// TestNamesOfAPool leave no directory.
func TestNamesOfAPool(t *testing.T) {
	p := newPool(t, imageOnExt4)
	for _, name := range []string{"", ".", "..", "a/b", ".keep", strings.Repeat("x", 256)} {
		r := record(name, 8*mib)
		for what, err := range map[string]error{
			"save": p.Save(r), "make": p.Make(t.Context(), r), "trash": p.Trash(r), "forget": p.Forget(name),
			"stage": p.Stage(t.Context(), r, "/nowhere", nil, false), "grow": p.Grow(t.Context(), r),
			"unstage": p.Locations.Unstage(t.Context(), name, "/nowhere"), "release": p.Release(name),
		} {
			if !errors.Is(err, volume.ErrInvalid) {
				t.Errorf("%s of %.20q: %v", what, name, err)
			}
		}
	}
	long := p.make(record(strings.Repeat("x", 253), 8*mib))
	p.delete(long)
}

// BenchmarkRecords is what a pool of 10,000 volumes takes when it is opened.
func BenchmarkRecords(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "pool")
	p, err := Open(path, Config{Backend: local.Image})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for n := range 10_000 {
		name := fmt.Sprintf("pvc-%08d-aaaa-bbbb-cccc-%012d", n, n)
		if err := os.WriteFile(filepath.Join(path, recordsName, name), fmt.Appendf(nil,
			`{"version":1,"name":%q,"state":"ready","size":1073741824,"comment":"{\"cluster\":\"x\",\"pvc\":\"n/c\"}"}`, name), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if all, err := p.Records(); err != nil || len(all) != 10_000 {
			b.Fatal(len(all), err)
		}
	}
}

// BenchmarkMakeAndDelete is what a volume takes from its making to its end.
func BenchmarkMakeAndDelete(b *testing.B) {
	for _, k := range []kind{imageOnExt4, imageOnXFS, onBtrfs} {
		b.Run(strings.ReplaceAll(k.name, " ", "-"), func(b *testing.B) {
			pool, err := Open(filepath.Join(roottest.FileSystem(b, k.fsType, 512), "pool"), Config{Backend: k.backend})
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			p := &testPool{Pool: pool}
			for n := 0; b.Loop(); n++ {
				r := record(fmt.Sprint("pvc-", n), 32*mib)
				if err := errors.Join(p.tryMake(r), p.tryDelete(r), p.Erase(b.Context())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestManyVolumesAtOnce live through all at the same time: none waits for another, or takes its loop device.
// Their names are no other process's: what uses a loop device of a volume of that name holds up an unstage.
func TestManyVolumesAtOnce(t *testing.T) {
	each(t, []kind{imageOnXFS, onBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		const many = 12
		name := func(n int) string { return fmt.Sprintf("pvc-%d-%d", os.Getpid(), n) }
		ended := make(chan error)
		for n := range many {
			path := target(t)
			go func() {
				ended <- func() error {
					for round := range 3 {
						r := record(name(n), 8*mib)
						r.Block = k.backend == local.Image && round == 1
						if err := p.tryMake(r); err != nil {
							return err
						}
						if err := p.Stage(t.Context(), r, path, nil, false); err != nil {
							return err
						}
						table, err := attach.Table()
						if err != nil {
							return err
						}
						if found, err := p.Mounts(table, r.Name); err != nil || len(found) != 1 {
							return fmt.Errorf("mounts of %s: %+v, %w", r.Name, found, err)
						}
						if err := p.Locations.Unstage(t.Context(), r.Name, path); err != nil {
							return err
						}
						if err := p.tryDelete(r); err != nil {
							return err
						}
					}
					return nil
				}()
			}()
		}
		var failed []error
		for range many {
			failed = append(failed, <-ended)
		}
		must(t, errors.Join(append(failed, p.Erase(t.Context()))...))
		for n := range many {
			if err := p.gone(name(n)); err != nil {
				t.Error(err)
			}
		}
	})
}
