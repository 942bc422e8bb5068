package localdisk

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/scratch"
)

// directories keeps each volume in a directory of its own, with a project quota.
type directories struct{ *Pool }

func (d directories) create(_ context.Context, r local.Record, project uint32) error {
	_, err := d.dir.CreateAs(d.place(r), scratch.Making{Prepare: func(fd int) error {
		_, err := d.ids.Set(fd, project, d.limitOf(r), logkeys.Volume, r.Name)
		return err
	}})
	if err != nil {
		return err
	}
	dir, err := d.openData(r)
	if err != nil {
		return err
	}
	defer dir.Close()
	return kernel.Sync(dir)
}

func (d directories) clone(context.Context, local.Record, local.Record, uint32) error {
	return volume.Invalid("volume_content_source", "or a snapshot is not possible in a pool of directories")
}

func (d directories) grow(r local.Record, project uint32) error {
	if project == 0 {
		return errNoProject
	}
	limit := d.limitOf(r)
	before, ok := d.ids.Of(project)
	if ok && before.Limit.Bytes >= limit.Bytes && (before.Limit.Inodes == 0 || before.Limit.Inodes >= limit.Inodes) {
		return nil
	}
	return d.ids.Kernel.SetLimit(project, limit)
}

func (d directories) free(local.Record) error { return nil }

func (d directories) stage(ctx context.Context, r local.Record, path string, options []string, readOnly bool) error {
	d.makeHold(ctx, r)
	return d.bind(r, path, options, readOnly)
}

// bind binds the directory of a volume at a path.
func (p *Pool) bind(r local.Record, path string, options []string, readOnly bool) error {
	for _, option := range options {
		if !mount.KnownFlag(option) {
			return volume.Invalid("volume_capability.mount.mount_flags",
				fmt.Sprintf("has %.80q, which is not possible for a directory", option))
		}
	}
	options = slices.Clone(options)
	if readOnly {
		options = append(options, "ro")
	}
	table, err := attach.Table()
	if err != nil {
		return err
	}
	if there, ok := attach.At(table, path); ok {
		return p.sameBinding(r, there, options)
	}
	if err := p.tools.MakeDir(path); err != nil {
		return err
	}
	return mount.New().Mount(p.dir.Source(p.place(r)), path, "", append(options, "bind"))
}

// sameBinding compares what is mounted at a path with what should be.
func (p *Pool) sameBinding(r local.Record, there attach.Mount, options []string) error {
	if there.Device != p.location.Device || there.Root != p.rootOf(r.Name) {
		return fmt.Errorf("%w: %w: %s of %s, from %s", attach.ErrNotOurs, volume.ErrForeignMount, there.FSType, there.Source, there.Root)
	}
	for _, option := range options {
		// The table has no line for what is not there, and for how files are accessed unless told otherwise.
		is := slices.Contains(there.Flags, option)
		switch option {
		case "exec", "dev", "suid", "rw":
			is = !slices.Contains(there.Flags, map[string]string{"exec": "noexec", "dev": "nodev", "suid": "nosuid", "rw": "ro"}[option])
		case "strictatime":
			is = !slices.Contains(there.Flags, "noatime") && !slices.Contains(there.Flags, "relatime")
		}
		if !is {
			return fmt.Errorf("%w: it is mounted there without %s", volume.ErrConflict, option)
		}
	}
	if !slices.Contains(options, "ro") && slices.Contains(there.Flags, "ro") {
		return fmt.Errorf("%w: it is mounted there read-only", volume.ErrConflict)
	}
	return nil
}

// rootOf is the directory of a volume in the pool's file system.
func (p *Pool) rootOf(name string) string { return filepath.Join(p.location.Root, volumesName, name) }

func (d directories) mounts(table []attach.Mount, name string) ([]attach.Mount, error) {
	return d.bindings(table, name), nil
}

// bindings returns the mounts of the directory of a volume, and of what is in it.
func (p *Pool) bindings(table []attach.Mount, name string) (found []attach.Mount) {
	root := p.rootOf(name)
	for _, m := range table {
		if m.Device == p.location.Device && within(strings.TrimSuffix(m.Root, removedMark), root) {
			found = append(found, m)
		}
	}
	return found
}

func (d directories) stats(r local.Record, path string, project uint32) (volume.Stats, error) {
	return d.counted(r, path, project)
}

// makeHold makes the limit of a volume hold that is about to be used. Its files do not have the project of its record in a
// copy of a pool, as after a restore: then they get another one, which no files have. A limit that cannot be made to hold
// keeps no pod from its data.
func (d directories) makeHold(ctx context.Context, r local.Record) {
	project := d.projectOf(r.Name)
	if project == 0 || d.hasProject(r, project) {
		d.held(r, project)
		return
	}
	project, err := d.takeProject(r, false)
	if err == nil {
		err = d.ids.Kernel.SetLimit(project, d.limitOf(r))
	}
	if err == nil {
		err = d.dir.Mark(ctx, d.place(r), func(fd int) error { return d.ids.Kernel.SetProject(fd, project) }, nil)
	}
	if err != nil {
		d.Log.Error(err, "the files of a volume do not have its project, as in a copy or after a restore; its limit does not hold",
			logkeys.Volume, r.Name, logkeys.Path, d.path)
		return
	}
	d.Log.Info("the files of a volume have got a project again, as after a copy or a restore; its limit holds",
		logkeys.Volume, r.Name, logkeys.Path, d.path, "project", project)
}

// hasProject reports whether the files of a volume have a project.
func (p *Pool) hasProject(r local.Record, project uint32) bool {
	has := true
	err := p.dir.WithData(p.place(r), func(fd int) error {
		has = p.ids.Has(fd, project)
		return nil
	})
	return err != nil || has
}

// held returns what a volume's project uses. Its limit is set again if another program has changed it; one that grows
// may have the former one yet.
func (p *Pool) held(r local.Record, project uint32) (quota.Quota, bool) {
	if r.GrowsFrom != 0 {
		return p.ids.Of(project)
	}
	return p.ids.Held(project, p.limitOf(r), logkeys.Volume, r.Name)
}

// counted measures a directory by what its project uses.
func (p *Pool) counted(r local.Record, path string, project uint32) (volume.Stats, error) {
	stats, err := p.tools.Stats(path)
	if err != nil || stats.Abnormal {
		return stats, err
	}
	free, err := kernel.Fstatfs(int(p.here.Fd()))
	if err != nil {
		return volume.Stats{}, err
	}
	if !p.hasProject(r, project) {
		stats.Used.Bytes, stats.Used.Inodes, err = p.dir.Usage(context.Background(), p.place(r), nil)
		return stats, err // and the room is the disk's: nothing limits it
	}
	used, ok := p.held(r, project)
	if !ok {
		return volume.Stats{}, fmt.Errorf("read what its project %d uses: %w", project, unix.ENODATA)
	}
	stats.Used = used.Used
	stats.Space.Total.Bytes = r.Size
	stats.Space.Free.Bytes = max(0, min(r.Size-used.Used.Bytes, int64(free.Bavail)*free.Bsize))
	return stats, nil
}
