package ephemeral

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/scratch"
)

// limitsInterval is how often the limits of published volumes are compared with what the kernel has.
const limitsInterval = time.Minute

// trashPage is how many names of the trash the start reads at a time.
const trashPage = 4096

// takeProject gives the record of a volume a project, if its data directory is about to be made. A
// directory that exists keeps what it has: to mark its files one by one takes longer than to erase
// them. After a reboot they are few: those of a volume whose record a power cut took. And where they do not have the project
// of the record it gets another one, which no files have.
func (t *task) takeProject(next *volume.Record) (err error) {
	if next.Attach != (volume.Place{}) || !t.Quota.Gives(next.Terms.Limit) {
		return nil
	}
	if t.record != nil {
		if next.Project != 0 && t.Quota.Counts() && !t.hasProject(t.record) {
			next.Project, err = t.Quota.Take(next.Terms.Limit, logkeys.About(*next)...)
		}
		return err
	}
	exists, err := t.Scratch.Exists(next.Place())
	if err != nil || exists && !t.Rebooted {
		return nil // an error comes again when the directory is made
	}
	next.Project, err = t.Quota.Take(next.Terms.Limit, logkeys.About(*next)...)
	return err
}

// setProject gives the new data directory its project and limit. If the file system refuses, the
// record is without a project before the pod can write.
func (t *task) setProject(fd int) error {
	project := t.record.Project
	if project == 0 {
		return nil
	}
	set, err := t.Quota.Set(fd, project, t.record.Terms.Limit, logkeys.About(*t.record)...)
	if set || err != nil {
		return err
	}
	without := *t.record
	without.Project = 0
	if err := t.save(without); err != nil {
		return err
	}
	t.Quota.Forgotten(project)
	return nil
}

// markTime bounds how long the start of a pod waits until all files of its volume have their project: some 200,000 files.
const markTime = 30 * time.Second

// markProject gives the files of a volume that was there before the project of its record, if they do not have it. Where
// that fails, its limit does not hold.
func (t *task) markProject() error {
	r := t.record
	if r.Project == 0 || !t.Quota.Counts() || t.hasProject(r) {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, markTime)
	defer cancel()
	err := t.Quota.Kernel.SetLimit(r.Project, r.Terms.Limit)
	if err == nil {
		err = t.Scratch.Mark(ctx, r.Place(), func(fd int) error { return t.Quota.Kernel.SetProject(fd, r.Project) }, nil)
	}
	if err != nil {
		return t.Quota.NotEnforced(r.Terms.Limit, err, logkeys.About(*r)...)
	}
	if t.hasProject(r) {
		t.Log.Info("the files of a volume have got a project again", logkeys.About(*r, "project", r.Project)...)
	}
	return nil
}

// hasProject reports whether the files of a volume have the project of its record. They do not in a copy of a working
// directory: cp and rsync copy no projects.
func (e *environment) hasProject(r *volume.Record) bool {
	has := true
	err := e.Scratch.WithData(r.Place(), func(fd int) error {
		has = e.Quota.Has(fd, r.Project)
		return nil
	})
	if err == nil {
		e.Quota.Stray(r.Project, !has, logkeys.About(*r)...)
	}
	return has
}

// occupied returns what a volume with a data directory occupies, and its limit if that is enforced:
// what the kernel counts for its project, or else what a walk finds. The errors are those of
// scratch.Dir.Usage.
func (e *environment) occupied(ctx context.Context, r *volume.Record, pace scratch.Pace) (used, limit volume.Size, err error) {
	if q, ok := e.held(r); ok {
		exists, err := e.Scratch.Exists(r.Data())
		if err == nil && !exists {
			err = fs.ErrNotExist
		}
		return q.Used, q.Limit, err
	}
	used.Bytes, used.Inodes, err = e.Scratch.Usage(ctx, r.Data(), pace)
	return used, volume.Size{}, err
}

// held returns what the kernel counts for a volume's project, whose limit it sets again if another program has changed
// it, and whether that is known: that the volume's files have that project.
func (e *environment) held(r *volume.Record) (quota.Quota, bool) {
	if r.Phase == volume.Publishing { // it may not have got its project and limit yet
		return e.Quota.Of(r.Project)
	}
	if r.Project == 0 || !e.Quota.Counts() || !e.hasProject(r) {
		return quota.Quota{}, false
	}
	return e.Quota.Held(r.Project, r.Terms.Limit, logkeys.About(*r)...)
}

// holdLimits sets the limits of all volumes again that are published, where another program has changed them.
func (n *Node) holdLimits() {
	ctx, cancel := context.WithTimeout(n.env.ctx, limitsInterval)
	defer cancel()
	awake, err := n.Awake(ctx)
	if err != nil {
		if n.env.ctx.Err() == nil {
			n.env.Log.Error(err, "cannot compare the limits of volumes with what the kernel has; it is tried again",
				logkeys.Interval, duration.Format(limitsInterval))
		}
		return
	}
	for i := range awake {
		n.env.held(&awake[i].Record)
	}
}

// within returns the room that a volume has which uses so much and may take no more than limit: what
// statfs(2) of its directory shows.
func within(is volume.Space, limit, used volume.Size) volume.Space {
	is.Total.Bytes, is.Free.Bytes = atMost(is.Total.Bytes, is.Free.Bytes, limit.Bytes, used.Bytes)
	if is.Total.Inodes == 0 && limit.Inodes != 0 {
		is.Total.Inodes, is.Free.Inodes = math.MaxInt64, math.MaxInt64
	}
	is.Total.Inodes, is.Free.Inodes = atMost(is.Total.Inodes, is.Free.Inodes, limit.Inodes, used.Inodes)
	return is
}

func atMost(total, free, limit, used int64) (int64, int64) {
	if limit == 0 || limit > total {
		return total, free
	}
	return limit, min(free, max(0, limit-used))
}

// findInTrash tells which projects the entries of the trash have. Nothing else uses the trash yet.
func findInTrash(cfg Config) error {
	if !cfg.Quota.Counts() {
		return nil
	}
	for from := int64(0); ; {
		names, next, err := cfg.Scratch.TrashPage(from, trashPage)
		if err != nil {
			return fmt.Errorf("which projects are in the trash: %w", err)
		}
		for _, name := range names {
			cfg.Quota.InTrash(scratch.ProjectOf(name))
		}
		if from = next; next == 0 {
			return nil
		}
	}
}

// watchProjects sets projects aside that are of nothing that the node knows.
func (n *Node) watchProjects(ctx context.Context) {
	n.env.Quota.FindForeign(func() bool { return n.Pace(ctx) == nil })
	<-ctx.Done()
	n.env.Quota.Close()
}
