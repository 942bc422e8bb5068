package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/pause"
)

// auditor is the pod that looks into all volumes in the end.
const auditor = "0000a0d1-0000-4000-8000-000000000000"

// audit is one of a pool.
type audit struct {
	*Player
	class string

	mu    *sync.Mutex
	found *[]Violation
}

// Audit compares what is in the pools with what has to be, uses every volume once more, deletes all, and looks for what
// is left. Nobody else may use a volume meanwhile. The error says that it could not come to its end.
func (p *Player) Audit(ctx context.Context) (all []Violation, err error) {
	if err := p.Open(ctx); err != nil {
		return nil, err
	}
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		errs  []error
	)
	for class := range p.Pools {
		a := audit{Player: p, class: class, mu: &mu, found: &all}
		group.Go(func() {
			if err := a.all(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	return all, errors.Join(errs...)
}

func (a audit) add(v ...Violation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*a.found = append(*a.found, v...)
}

// breaks reports what befell a volume, as long as the run goes on.
func (a audit) breaks(ctx context.Context, e *entry, err error) {
	if ctx.Err() == nil {
		a.add(e.breaks("%v", err))
	}
}

func (a audit) all(ctx context.Context) error {
	is, volumes, snapshots, err := a.rest(ctx)
	if err != nil {
		return err
	}
	a.Player.mu.Lock()
	a.add(a.book.compare(a.class, is, volumes, snapshots)...)
	entries := a.book.of(a.class)
	a.Player.mu.Unlock()
	kept := make(map[string]*volume)
	for _, e := range entries {
		if !e.must || e.snapshot {
			continue
		}
		v := &volume{class: a.class, name: e.name, size: e.least, retained: strings.Contains(e.comments[0], "retained")}
		kept[e.name] = v
		if err := a.use(ctx, v, e); err != nil {
			a.breaks(ctx, e, err)
		}
	}
	for _, e := range entries {
		if !e.must || !e.snapshot {
			continue
		}
		if err := a.useSnapshot(ctx, e); err != nil {
			a.breaks(ctx, e, err)
		}
		if v := kept[e.from]; v != nil {
			v.snapshots = append(v.snapshots, e.name)
		}
	}
	for _, e := range entries {
		v := kept[e.name]
		if v == nil {
			continue
		}
		if err := a.delete(ctx, v); err != nil {
			a.breaks(ctx, e, err)
		}
	}
	return a.nothingLeft(ctx)
}

// rest waits until nothing in the pool changes any more, and returns what is there.
func (a audit) rest(ctx context.Context) (is pool, volumes, snapshots []found, err error) {
	limit := time.Now().Add(callLimit)
	for {
		all, err := a.Controller.pools(ctx, a.classes())
		if err != nil {
			return is, nil, nil, err
		}
		is = all[a.class]
		const page = "?limit=1000"
		v, err := ask[list[found]](ctx, a.Controller, http.MethodGet, "/"+is.UUID+"/volumes"+page, nil)
		if err != nil {
			return is, nil, nil, err
		}
		s, err := ask[list[found]](ctx, a.Controller, http.MethodGet, "/"+is.UUID+"/snapshots"+page, nil)
		if err != nil {
			return is, nil, nil, err
		}
		whole := true
		for _, f := range append(v.Items, s.Items...) {
			whole = whole && f.Ready
		}
		if whole || time.Now().After(limit) {
			return is, v.Items, s.Items, nil
		}
		if err := pause.For(ctx, again); err != nil {
			return is, nil, nil, err
		}
	}
}

// use gives a volume to a pod once more.
func (a audit) use(ctx context.Context, v *volume, e *entry) error {
	if v.retained {
		if err := a.stageOnce(ctx, a.is[v.class].UUID, v.name); status.Code(err) != codes.Unavailable {
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
	is, err := ask[found](ctx, a.Controller, http.MethodGet, a.pathOf(v), nil)
	if err == nil && (is.Size < e.least || is.Size > e.most) {
		err = fmt.Errorf("it is staged with %d bytes, and should have between %d and %d", is.Size, e.least, e.most)
	}
	if err != nil {
		return errors.Join(err, a.leave(ctx, v.name, auditor))
	}
	v.size = is.Size
	u := &Use{Player: a.Player, volume: v, pod: auditor, target: target}
	err = errors.Join(u.Verify(), a.fill(u), u.write())
	if err == nil {
		err = errors.Join(u.grow(ctx), a.fill(u), u.Verify())
	}
	return errors.Join(err, a.leave(ctx, v.name, auditor))
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
func (a audit) useSnapshot(ctx context.Context, e *entry) error {
	v, err := a.make(ctx, a.class, e.least, source{Snapshot: e.name})
	if err != nil || v == nil {
		return errors.Join(err, errors.New("no volume can be made of it"))
	}
	target, err := a.give(ctx, v, auditor)
	if err != nil {
		return err
	}
	return errors.Join(a.verify(v.name, target), a.leave(ctx, v.name, auditor), a.delete(ctx, v))
}

// nothingLeft reports what is left of volumes and snapshots that are all deleted.
func (a audit) nothingLeft(ctx context.Context) error {
	limit := time.Now().Add(callLimit)
	for {
		is, volumes, snapshots, err := a.rest(ctx)
		if err != nil {
			return err
		}
		left, err := leftIn(is.Path)
		if err != nil {
			return err
		}
		if len(left)+len(volumes)+len(snapshots) == 0 && is.Provisioned == 0 {
			return nil
		}
		if time.Now().After(limit) {
			a.add(Violation{What: fmt.Sprintf("all volumes of pool %s are deleted, %d bytes are promised, it lists %v and %v, and there is still %q",
				a.class, is.Provisioned, volumes, snapshots, left)})
			return nil
		}
		if err := pause.For(ctx, again); err != nil {
			return err
		}
	}
}

// keep is a file of the daemon's that keeps a directory from being empty.
const keep = ".keep"

// leftIn lists what there should not be in the directory of a pool without volumes, and its loop devices.
func leftIn(dir string) (left []string, err error) {
	for _, part := range []string{"volumes", "snapshots", "records", ".trash"} {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Name() != keep {
				left = append(left, filepath.Join(part, entry.Name()))
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
