package localdisk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
)

// Make makes the data of a volume or a snapshot, whose record is saved and says that it is being made. What an
// unfinished Make has left goes to the trash first. The data is durable when Make returns. After an error nothing is
// there, unless the error says so.
func (p *Pool) Make(ctx context.Context, r local.Record) error {
	return wrap(p.wantsRoom(p.make(ctx, r)), "make %s in pool %s", r.Name, p.path)
}

func (p *Pool) make(ctx context.Context, r local.Record) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	if failed := p.Describe().Failed; failed != "" {
		return fmt.Errorf("%w: %s", volume.ErrUnavailable, failed)
	}
	from, err := p.origin(r)
	if err != nil {
		return err
	}
	if err := p.discard(r); err != nil {
		return fmt.Errorf("remove what an unfinished attempt has left: %w", err)
	}
	project, err := p.takeProject(r, true)
	if err != nil {
		return err
	}
	if from == nil {
		err = p.backend.create(ctx, r, project)
	} else {
		err = p.backend.clone(ctx, r, *from, project)
	}
	if err == nil {
		_, part := p.part(r)
		err = kernel.Sync(part)
	}
	if err == nil {
		return nil
	}
	if undone := p.discard(r); undone != nil {
		err = fmt.Errorf("%w; a part of it is left: %w", err, undone)
	}
	return err
}

// origin returns the record that the data of another one begins with; nil for a volume that begins empty.
func (p *Pool) origin(r local.Record) (*local.Record, error) {
	name := r.Of
	if name == "" {
		name = r.Source.Snapshot
	}
	if name == "" {
		name = r.Source.Volume
	}
	switch {
	case name == "" && r.Block && !p.found.Block:
		return nil, volume.Invalid("volume_capability", "is that of a block device, which this pool has not: it keeps directories")
	case name == "":
		return nil, nil
	case !p.found.Copies:
		return nil, volume.Invalid("volume_content_source",
			"or a snapshot is not possible in this pool: its disk cannot share blocks between volumes, or, as images on btrfs, "+
				"not without taking more room than is promised; choose the backend btrfs there")
	}
	from, err := p.Load(name)
	switch {
	case err != nil:
		return nil, err
	case from.State != local.Ready:
		return nil, fmt.Errorf("%w: %s is not whole", volume.ErrNotFound, name)
	case r.IsSnapshot() == from.IsSnapshot() && r.IsSnapshot():
		return nil, volume.Invalid("source_volume_id", "is a snapshot")
	case r.IsSnapshot():
		return &from, nil
	case r.Size < from.Size:
		return nil, fmt.Errorf("%w: %d bytes are less than the %d of %s", pools.ErrOutOfRange, r.Size, from.Size, name)
	case r.Block != from.Block:
		return nil, volume.Invalid("volume_capability", "differs from the origin's: one is a block device, the other a file system")
	case p.identity.Backend == local.Image && !r.Block && fsTypeOf(r) != fsTypeOf(from):
		return nil, volume.Invalid("volume_capability.mount.fs_type", fmt.Sprintf("differs from the origin's, which is %s", fsTypeOf(from)))
	}
	return &from, nil
}

// takeProject gives a volume a project that no files have, in its record. A new volume has its share of the disk's inodes.
func (p *Pool) takeProject(r local.Record, isNew bool) (uint32, error) {
	if p.ids == nil || r.IsSnapshot() {
		return 0, nil
	}
	taken := p.project(r.Name)
	if isNew {
		space, err := p.dir.Space()
		if err != nil {
			return 0, err
		}
		taken.PerInode = perInode(space)
	}
	var err error
	if taken.Project, err = p.ids.Take(p.limitOf(r), logkeys.Volume, r.Name); err != nil {
		return 0, err
	}
	if before := p.setProject(r.Name, taken); before != 0 {
		p.ids.Forgotten(before)
	}
	// If this fails, the record that is there may have the project: it is not free.
	return taken.Project, p.save(r, taken)
}

// Grow makes the data of a volume as large as the record says, wherever it is mounted, and never smaller.
func (p *Pool) Grow(_ context.Context, r local.Record) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	return wrap(p.wantsRoom(p.backend.grow(r, p.projectOf(r.Name))), "grow %s to %d bytes in pool %s", r.Name, r.Size, p.path)
}

// Trash moves the data of a volume or a snapshot to the trash, durably; data that is not there is there already. The
// caller has seen in the mount table that it is mounted nowhere, and its record says that it is being deleted. The
// error is [pools.ErrInUse] while something uses the loop device of an image.
func (p *Pool) Trash(r local.Record) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	err := p.discard(r)
	if err == nil {
		err = p.dir.SyncGone(p.place(r).Pod)
	}
	return wrap(err, "delete %s in pool %s", r.Name, p.path)
}

// discard moves data to the trash, if it is there.
func (p *Pool) discard(r local.Record) error {
	place, project := p.place(r), p.projectOf(r.Name)
	there, err := p.dir.Exists(place)
	if err != nil || !there {
		return err
	}
	if err := p.backend.free(r); err != nil {
		return err
	}
	if p.ids != nil && project != 0 {
		p.ids.Discarded(project)
	}
	_, err = p.dir.DiscardAs(place, project)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case errors.Is(err, scratch.ErrTrashRefuses):
		// The disk has no room for one more name. The record says that this volume is half gone.
		err = p.dir.EraseInPlace(context.Background(), place, nil)
		if err == nil && p.ids != nil && project != 0 {
			p.ids.Erased(project)
		}
	}
	if err == nil && p.ids != nil {
		p.ids.Unlimit(project)
	}
	return err
}

// erasePage is how many names of the trash are read at once.
const erasePage = 256

// Erase frees the space of all that is in the trash. What cannot be erased stays; the error says what and why.
func (p *Pool) Erase(ctx context.Context) error {
	space, err := p.dir.Space()
	if err != nil {
		return err
	}
	var failed []error
	removed := false
	for position, more := int64(0), true; more; {
		names, next, err := p.dir.TrashPage(position, erasePage)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for _, name := range names {
			if err := p.erase(ctx, name); err != nil {
				failed = append(failed, err)
			} else {
				removed = true
			}
			if err := ctx.Err(); err != nil {
				return errors.Join(failed...)
			}
		}
		position, more = next, next != 0
	}
	if removed {
		_, err = p.dir.SpaceAfterErase(space)
		failed = append(failed, err, p.refill())
	}
	return errors.Join(failed...)
}

func (p *Pool) erase(ctx context.Context, name string) error {
	var pace scratch.Pace
	if p.Turns != nil {
		turn := p.Turns.Take()
		defer turn.End()
		pace = turn.Next
	}
	if err := p.dir.Erase(ctx, name, pace); err != nil {
		return err
	}
	if project := scratch.ProjectOf(name); p.ids != nil && project != 0 {
		p.ids.Erased(project)
	}
	return nil
}

// recover makes the pool as after a clean end: it knows the projects in use again, removes files that were being
// written, and thaws what a crash has left frozen.
func (p *Pool) recover() error {
	for _, dir := range []*os.File{p.here, p.records} {
		if err := removeUnfinished(dir); err != nil {
			return err
		}
	}
	all, err := p.all()
	if err != nil {
		// Records says so, too. The others are of use without these.
		p.Log.Error(err, "there are records of volumes that cannot be read", logkeys.Path, p.path)
	}
	known := map[string]bool{}
	for _, k := range all {
		known[k.Name] = true
		if k.Project != 0 && p.ids != nil {
			p.setProject(k.Name, k.project)
			p.ids.Known(k.Project)
		}
	}
	if p.ids != nil {
		if err := p.knowTrash(); err != nil {
			return err
		}
	}
	if images, ok := p.backend.(*images); ok {
		for _, k := range all {
			if k.State == local.Making {
				images.thawOrigin(k.Record)
			}
		}
	}
	for _, part := range []*os.File{p.volumes, p.snapshots} {
		names, err := namesIn(part)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !known[name] && name != keepName {
				p.Log.Info("there is data without a record; it stays, and is of no volume", logkeys.Path, part.Name()+"/"+name)
			}
		}
	}
	return nil
}

// knowTrash tells the projects what is in the trash.
func (p *Pool) knowTrash() error {
	for position, more := int64(0), true; more; {
		names, next, err := p.dir.TrashPage(position, erasePage)
		if err != nil {
			return err
		}
		for _, name := range names {
			p.ids.InTrash(scratch.ProjectOf(name))
		}
		position, more = next, next != 0
	}
	return nil
}

func removeUnfinished(dir *os.File) error {
	names, err := namesIn(dir)
	for _, name := range names {
		if strings.HasPrefix(name, newPrefix) {
			err = errors.Join(err, ignoreMissing(kernel.Unlinkat(int(dir.Fd()), name)))
		}
	}
	return err
}

// openData opens the directory that has the data of a record.
func (p *Pool) openData(r local.Record) (*os.File, error) {
	_, part := p.part(r)
	fd, err := kernel.Openat(int(part.Fd()), r.Name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("data of %s: %w", r.Name, err)
	}
	return os.NewFile(uintptr(fd), part.Name()+"/"+r.Name), nil
}
