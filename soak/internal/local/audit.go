package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
)

// auditor is the pod that looks into all volumes in the end.
const auditor = "0000a0d1-0000-4000-8000-000000000000"

// audit is one of a pool.
type audit struct {
	*Player
	class string
}

// Audit compares what is in the pools with what has to be, uses every volume once more, deletes all, and looks for what
// is left. No other caller may use a volume meanwhile. The error says that it could not come to its end; what is known to be
// wrong by then is returned all the same.
func (p *Player) Audit(ctx context.Context) (all []Violation, err error) {
	if err := p.Open(ctx); err != nil {
		return p.book.broken(), err
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for class := range p.Pools {
		group.Go(func() {
			wrong, failed := audit{p, class}.all(ctx)
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, wrong...), errors.Join(err, failed)
		})
	}
	group.Wait()
	return append(all, p.book.broken()...), err
}

// failed goes on with a volume's story: what it was used for failed, and not because the run ended.
func (a audit) failed(ctx context.Context, name string, err error) {
	if err != nil && ctx.Err() == nil {
		e := now(name)
		e.What, e.Text = story.Failed, err.Error()
		a.told(e)
	}
}

// told goes on with the story of a volume or a snapshot that has one.
func (a audit) told(e story.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.book[e.Volume].Add(e)
}

// all is the whole of it. It returns what is wrong with the pool.
func (a audit) all(ctx context.Context) (wrong []Violation, err error) {
	has, err := a.await(ctx, contents.settled)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	wrong = a.book.look(a.class, has)
	a.mu.Unlock()
	kept := make(map[string]*volume)
	for _, f := range has.volumes {
		v := &volume{class: a.class, name: f.Name, size: f.Size, retained: strings.Contains(f.Comment, "retained")}
		kept[f.Name] = v
		a.failed(ctx, v.told(), a.use(ctx, v))
	}
	for _, f := range has.snapshots {
		name := nameOf(a.class, snapshots, f.Name)
		a.failed(ctx, name, a.useSnapshot(ctx, f))
		if v := kept[f.Of]; v != nil {
			v.snapshots = append(v.snapshots, f.Name)
		}
	}
	for _, f := range has.volumes {
		v := kept[f.Name]
		a.failed(ctx, v.told(), a.delete(ctx, v))
	}
	left, err := a.nothingLeft(ctx)
	return append(wrong, left...), err
}

// contents is what a pool has, and left what there is on the disk of volumes and snapshots.
type contents struct {
	pool               pool
	volumes, snapshots []found
	left               []string
}

// settled: nothing in the pool changes any more.
func (c contents) settled() bool {
	return !slices.ContainsFunc(slices.Concat(c.volumes, c.snapshots), func(f found) bool { return !f.Ready })
}

func (c contents) empty() bool {
	return len(c.left)+len(c.volumes)+len(c.snapshots) == 0 && c.pool.Provisioned == 0
}

// await looks at the pool until it is as it should be, or for as long as that may take, and returns what is there.
func (a audit) await(ctx context.Context, is func(contents) bool) (has contents, err error) {
	limit := time.Now().Add(a.settle)
	err = pause.Until(ctx, again, func() (bool, error) {
		all, err := a.Controller.pools(ctx, a.classes())
		has = contents{pool: all[a.class]}
		for kind, items := range map[string]*[]found{volumes: &has.volumes, snapshots: &has.snapshots} {
			if err == nil {
				*items, err = a.list(ctx, has.pool, kind)
			}
		}
		if err == nil {
			has.left, err = leftIn(has.pool.Path)
		}
		return err != nil || is(has) || time.Now().After(limit), err
	})
	return has, err
}

func (a audit) list(ctx context.Context, is pool, kind string) ([]found, error) {
	all, err := ask[list[found]](ctx, a.Controller, http.MethodGet, "/"+is.UUID+"/"+kind+"?limit=1000", nil)
	return all.Items, err
}

// use gives a volume to a pod once more.
func (a audit) use(ctx context.Context, v *volume) error {
	if v.retained {
		isBusy := func(err error) bool { return status.Code(err) == codes.Aborted }
		if err := repeat(ctx, "stage "+v.name, isBusy, a.staged(v, auditor).Stage); status.Code(err) != codes.Unavailable {
			return fmt.Errorf("it is retained, and staging it was answered with %w", err)
		}
		if err := a.restore(ctx, v); err != nil {
			return err
		}
	}
	target, err := a.give(ctx, v, auditor)
	if err != nil {
		return err
	}
	u := &Use{Player: a.Player, volume: v, pod: auditor, target: target}
	err = errors.Join(a.see(ctx, v), u.Verify(), a.fill(u), u.write())
	if err == nil {
		err = errors.Join(u.grow(ctx), a.see(ctx, v), a.fill(u), u.Verify())
	}
	return errors.Join(err, a.leave(ctx, v, auditor))
}

// see looks at what the node says of a volume, which decides how large it is from now on.
func (a audit) see(ctx context.Context, v *volume) error {
	is, err := ask[found](ctx, a.Controller, http.MethodGet, a.pathOf(v), nil)
	if err == nil {
		v.size = is.Size
		a.told(is.sight(volumes, "", now(v.told())))
	}
	return err
}

// fill fails if the pod cannot have the room that it was promised, or has more.
func (a audit) fill(u *Use) error {
	taken, err := content.Overfill(u.target, content.Room{Bytes: 2 * u.size, Inodes: 1})
	if err != nil {
		return err
	}
	least := u.size / 2 // the file system on an image has its own share
	if a.Pools[a.class] == ProjectQuota {
		least = u.size - mebi
	}
	if taken.Bytes < least || taken.Bytes > u.size {
		return fmt.Errorf("it has %d bytes, and a pod can write %d", u.size, taken.Bytes)
	}
	return nil
}

// useSnapshot makes a volume of a snapshot.
func (a audit) useSnapshot(ctx context.Context, f found) error {
	v, err := a.make(ctx, a.class, f.Size, source{Snapshot: f.Name})
	if err != nil || v == nil {
		return errors.Join(err, errors.New("no volume can be made of it"))
	}
	target, err := a.give(ctx, v, auditor)
	if err != nil {
		return err
	}
	return errors.Join(a.verify(v.told(), target), a.leave(ctx, v, auditor), a.delete(ctx, v))
}

// nothingLeft reports what is left of volumes and snapshots that are all deleted.
func (a audit) nothingLeft(ctx context.Context) ([]Violation, error) {
	has, err := a.await(ctx, contents.empty)
	if err != nil || has.empty() {
		return nil, err
	}
	return []Violation{{What: fmt.Sprintf("all volumes of pool %s are deleted, %d bytes are promised, it lists %v and %v, "+
		"and there is still %q", a.class, has.pool.Provisioned, has.volumes, has.snapshots, has.left)}}, nil
}

// keep is a file of the daemon's that keeps a directory from being empty, spare one beside its records that the next one
// takes the place of where the disk has no inode for it.
const (
	keep  = ".keep"
	spare = "records/.spare"
)

// leftIn lists what there should not be in the directory of a pool without volumes, and its loop devices.
func leftIn(dir string) (left []string, err error) {
	for _, part := range []string{"volumes", "snapshots", "records", ".trash"} {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if name := filepath.Join(part, entry.Name()); entry.Name() != keep && name != spare {
				left = append(left, name)
			}
		}
	}
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(backing), dir+"/") {
			left = append(left, strings.TrimSpace(string(backing)))
		}
	}
	return left, err
}
