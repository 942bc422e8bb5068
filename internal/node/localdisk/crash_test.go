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

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

var errCrash = errors.New("the daemon has crashed")

// crashes runs a step once to its end, and then with an end of the daemon before each of its changes: from there on no
// change is made, as after a kill. Then a new daemon repeats the step, and check looks at the result. prepare makes
// the pool ready for a step each time, after undoes what the step has done.
func (p *testPool) crashes(prepare func() error, step func() error, check, after func() error) {
	p.t.Helper()
	changes := 0
	var dead bool
	var dies int
	var last string
	kernel.Inject(p.t, func(call, path string) error {
		if dies == 0 {
			return nil
		}
		changes++
		if changes >= dies {
			if !dead {
				last = fmt.Sprintf("%s of %s", call, path)
			}
			dead = true
			return errCrash
		}
		return nil
	})
	for n := 1; ; n++ {
		must(p.t, prepare())
		changes, dead, dies = 0, false, n
		err := step()
		crashed := dead
		dies = 0
		if !crashed {
			must(p.t, err)
			must(p.t, check())
			must(p.t, after())
			p.t.Logf("%d crashes", n-1)
			if n < 3 {
				p.t.Fatal("the step makes fewer changes than it should")
			}
			return
		}
		must(p.t, p.Close())
		p.open()
		if err := step(); err != nil {
			p.t.Fatalf("repeated after a crash at change %d, %s: %v", n, last, err)
		}
		if err := check(); err != nil {
			p.t.Fatalf("after a crash at change %d, %s: %v", n, last, err)
		}
		if err := after(); err != nil {
			p.t.Fatalf("afterwards, after a crash at change %d, %s: %v", n, last, err)
		}
	}
}

// holds checks what a volume holds, and leaves it unstaged.
func (p *testPool) holds(r local.Record, want string) error {
	path := filepath.Join(p.t.TempDir(), "check")
	if err := p.Stage(context.Background(), r, path, nil, false); err != nil {
		return err
	}
	got, err := os.ReadFile(path + "/file")
	if want == "" && errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil && string(got) != want {
		err = fmt.Errorf("it holds %q, want %q", got, want)
	}
	if err == nil && r.Size > 0 {
		stats, failed := p.Stats(r, path)
		if err = failed; err == nil && stats.Space.Total.Bytes < r.Size*3/4 {
			err = fmt.Errorf("%d bytes, want %d", stats.Space.Total.Bytes, r.Size)
		}
	}
	return errors.Join(err, p.Locations.Unstage(context.Background(), r.Name, path))
}

func (p *testPool) clean() error {
	if err := p.Erase(context.Background()); err != nil {
		return err
	}
	left, err := p.dir.TrashSize()
	if err == nil && left > 0 {
		err = fmt.Errorf("%d are left in the trash", left)
	}
	for _, dir := range []*os.File{p.here, p.records} {
		names, failed := namesIn(dir)
		err = errors.Join(err, failed)
		for _, name := range names {
			if strings.HasPrefix(name, newPrefix) || strings.HasPrefix(name, damagedPrefix) {
				err = errors.Join(err, fmt.Errorf("%s is left", name))
			}
		}
	}
	return err
}

func (p *testPool) gone(name string) error {
	if _, err := p.Load(name); !errors.Is(err, volume.ErrNotFound) {
		return fmt.Errorf("the record is there: %w", err)
	}
	devices, err := p.loops(name)
	if len(devices) > 0 {
		err = errors.Join(err, fmt.Errorf("%q are left", devices))
	}
	for _, part := range []string{volumesName, snapshotsName} {
		if _, stat := os.Stat(filepath.Join(p.path, part, name)); !errors.Is(stat, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("the data is there: %w", stat))
		}
	}
	return err
}

// crashKinds are fewer than all: each crash makes a volume.
var crashKinds = []kind{imageOnExt4, imageOnXFS, quotaOnXFS, quotaOnExt4, onBtrfs}

// TestCrashOfAPool ends the daemon before each change of making a volume, and of deleting it.
func TestCrashOfAPool(t *testing.T) {
	each(t, crashKinds, func(t *testing.T, k kind) {
		p := newPool(t, k)
		r := record("pvc-1", sizeFor(k))
		ready := r
		ready.State = local.Ready
		nothing := func() error { return nil }
		p.crashes(nothing, func() error { return p.tryMake(r) },
			func() error { return p.holds(ready, "") },
			func() error { return errors.Join(p.tryDelete(ready), p.gone(r.Name), p.clean()) })
		p.crashes(func() error { return p.tryMake(r) }, func() error { return p.tryDelete(ready) },
			func() error { return p.gone(r.Name) }, p.clean)
	})
}

// TestCrashOfAStage ends the daemon before each change of staging and unstaging.
func TestCrashOfAStage(t *testing.T) {
	each(t, crashKinds, func(t *testing.T, k kind) {
		p := newPool(t, k)
		for _, block := range []bool{false, true} {
			if block && k.backend != local.Image {
				continue
			}
			r := record("pvc-1", sizeFor(k))
			r.Block = block
			r = p.make(r)
			path := target(t)
			stage := func() error { return p.Stage(context.Background(), r, path, nil, false) }
			unstage := func() error { return p.Locations.Unstage(context.Background(), r.Name, path) }
			staged := func() error {
				table, err := attach.Table()
				if err != nil {
					return err
				}
				found, err := p.Mounts(table, r.Name)
				if err == nil && len(found) != 1 {
					err = fmt.Errorf("mounts: %+v", found)
				}
				return err
			}
			unstaged := func() error {
				devices, err := p.loops(r.Name)
				if len(devices) > 0 {
					err = errors.Join(err, fmt.Errorf("%q are left", devices))
				}
				table, failed := attach.Table()
				found, mounts := p.Mounts(table, r.Name)
				if len(found) > 0 {
					err = errors.Join(err, fmt.Errorf("mounts: %+v", found))
				}
				return errors.Join(err, failed, mounts)
			}
			p.crashes(func() error { return nil }, stage, staged, func() error { return errors.Join(unstage(), unstaged()) })
			if block {
				p.crashes(stage, unstage, unstaged, func() error { return nil })
			}
			p.delete(r)
		}
	})
}

// TestCrashOfACopy ends the daemon before each change of a snapshot and of a clone, while the origin is in use: it
// never stays frozen.
func TestCrashOfACopy(t *testing.T) {
	each(t, []kind{imageOnXFS, onBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		origin := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(origin)
		write(t, path+"/file", "content")
		works := func() error { return os.WriteFile(path+"/other", []byte("x"), 0o600) }
		s := record("snap-1", origin.Size)
		s.Of = origin.Name
		clone := record("pvc-2", origin.Size)
		clone.Source.Snapshot = s.Name
		direct := record("pvc-3", origin.Size)
		direct.Source.Volume = origin.Name
		for _, r := range []local.Record{s, direct} {
			p.crashes(func() error { return nil }, func() error { return p.tryMake(r) },
				func() error {
					if r.IsSnapshot() {
						if err := p.tryMake(clone); err != nil {
							return err
						}
						return errors.Join(p.holds(clone, "content"), p.tryDelete(clone), works())
					}
					return errors.Join(p.holds(r, "content"), works())
				},
				func() error { return errors.Join(p.tryDelete(r), p.gone(r.Name), p.clean()) })
		}
		p.make(s)
		p.crashes(func() error { return nil }, func() error { return p.tryMake(clone) },
			func() error { return p.holds(clone, "content") },
			func() error { return errors.Join(p.tryDelete(clone), p.gone(clone.Name), p.clean()) })
	})
}

// TestCrashOfANewPool ends the daemon before each change of making a pool.
func TestCrashOfANewPool(t *testing.T) {
	dir := newDisk(t, imageOnExt4)
	for n := 1; ; n++ {
		path := filepath.Join(dir, fmt.Sprint("pool-", n))
		changes, dies := 0, n
		kernel.Inject(t, func(string, string) error {
			if changes++; dies > 0 && changes >= dies {
				return errCrash
			}
			return nil
		})
		p, err := Open(path, Config{Backend: local.Image, Log: logr.Discard()})
		dies = 0
		if err == nil {
			must(t, p.Close())
			if n < 3 {
				t.Fatal("a pool is made with fewer changes than it should")
			}
			return
		}
		wants(t, err, errCrash)
		p, err = Open(path, Config{Backend: local.Image, Log: logr.Discard()})
		if err != nil {
			t.Fatalf("after a crash at change %d: %v", n, err)
		}
		uuid := p.Describe().UUID
		must(t, p.Close())
		p, err = Open(path, Config{Expect: uuid, Log: logr.Discard()})
		must(t, err)
		must(t, p.Close())
	}
}

// TestCrashOfAGrow ends the daemon before each change of growing a volume.
func TestCrashOfAGrow(t *testing.T) {
	each(t, []kind{imageOnXFS, quotaOnXFS, quotaOnExt4, onBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		size := sizeFor(k)
		r := record("pvc-1", size)
		r.Block = k.backend == local.Image
		r = p.make(r)
		path := p.stage(r)
		before := -1
		for n := 1; ; n++ {
			r.Size += mib
			changes, dies := 0, n
			kernel.Inject(t, func(string, string) error {
				if changes++; dies > 0 && changes >= dies {
					return errCrash
				}
				return nil
			})
			err := p.Grow(t.Context(), r)
			crashed := dies > 0 && changes >= dies
			dies = 0
			p.reopen()
			if crashed {
				err = p.Grow(t.Context(), r)
			}
			must(t, errors.Join(err, p.Save(r)))
			stats, err := p.Stats(r, path)
			if err != nil || stats.Space.Total.Bytes != r.Size {
				t.Fatalf("stats %+v, %v, want those of %d bytes", stats, err, r.Size)
			}
			if !crashed {
				break
			}
			before = n
		}
		t.Logf("%d crashes", before)
	})
}
