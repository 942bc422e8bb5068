package localdisk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	attachdisk "github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/scratch"
)

// Config says how to open a pool.
type Config struct {
	// Class is the PoolClass that the administrator wants the pool in.
	Class string
	// Backend is what is to keep the volumes; empty or [local.Auto] for what fits the disk. A pool keeps the one
	// that it was made with, and Open refuses another one.
	Backend local.Backend
	// Expect is the UUID of the pool that was at the path before; empty for none. Then Open makes none there, and
	// opens no other one.
	Expect string
	// NotOn are directories on whose file systems Open makes no pool, such as the root: it takes a directory there for
	// one whose disk is not mounted yet. What is missing of them does not matter. It opens a pool that is there.
	NotOn []string
	// HostRoot is the host's root directory, in which mkfs and fsck are run; empty for this process' own.
	HostRoot string
	// Projects gives IDs to volumes; all pools of a process share it.
	Projects *Projects
	// Locations know where the pools of a process are; all of them share it.
	Locations *Locations
	// Turns are those in which the trash is erased; nil for all at once.
	Turns *pace.Turns
	Log   logr.Logger
}

// Pool is an open pool. See [Dir] for who may call what at the same time.
type Pool struct {
	Config
	path     string
	identity identity
	dir      *scratch.Dir
	// here is the pool's directory, locked; the others are directories in it.
	here, volumes, snapshots, records *os.File
	// location is the pool's in its file system.
	location mount.Location
	backend  backend
	// ids gives project IDs; nil for images.
	ids   *fsProjects
	tools attachdisk.Tools
	// reserve is what records may take when the disk is full.
	reserve reserve

	mu sync.Mutex
	// found is what Describe says; only found.Failed changes, under mu.
	found local.Pool
	// projects are those of the volumes that have one, as in their records.
	projects map[string]project
}

var _ Dir = (*Pool)(nil)

// backend keeps the data of volumes and snapshots; places are in the pool's directory.
type backend interface {
	// create makes the data of a new volume, and clone that of a snapshot, or of a volume that begins with the data
	// of another record. project is the volume's, 0 where the backend has none. After an error there may be a part.
	create(ctx context.Context, r local.Record, project uint32) error
	clone(ctx context.Context, r, from local.Record, project uint32) error
	// grow makes a volume as large as its record says.
	grow(r local.Record, project uint32) error
	stage(ctx context.Context, r local.Record, path string, options []string, readOnly bool) error
	// free makes sure that nothing uses the data of a volume or a snapshot, so that it can be moved.
	free(r local.Record) error
	stats(r local.Record, path string, project uint32) (volume.Stats, error)
	mounts(table []attach.Mount, name string) ([]attach.Mount, error)
}

// The names in a pool's directory.
const (
	poolFile      = "pool.json"
	volumesName   = "volumes"
	snapshotsName = "snapshots"
	recordsName   = "records"
	lostAndFound  = "lost+found"
)

const dirMode = 0o750

// Open opens the pool at a path, and makes it in an empty directory, or where there is none. Errors, besides those
// of the disk: [volume.ErrUnavailable] if the pool that Config expects is not there, or another process has it open,
// [volume.ErrConflict] if another pool is there, or it keeps its volumes in another way, [volume.ErrInvalid] if the
// directory is not empty and no pool, or cannot be one.
func Open(path string, cfg Config) (*Pool, error) {
	p, err := open(path, cfg)
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", path, err)
	}
	return p, nil
}

func open(path string, cfg Config) (_ *Pool, err error) {
	if !filepath.IsAbs(path) {
		return nil, volume.Invalid("path", "is not absolute")
	}
	if cfg.Backend == "" {
		cfg.Backend = local.Auto
	}
	if cfg.Projects == nil {
		cfg.Projects = NewProjects(quota.LocalRange, nil, nil, cfg.Log)
	}
	if cfg.Locations == nil {
		cfg.Locations = NewLocations(path)
	}
	p := &Pool{Config: cfg, path: filepath.Clean(path), projects: map[string]project{},
		tools: attachdisk.Tools{Root: cfg.HostRoot, Log: cfg.Log}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := p.openDirectory(); err != nil {
		return nil, err
	}
	if err := p.identify(); err != nil {
		return nil, err
	}
	if err := p.openParts(); err != nil {
		return nil, err
	}
	if err := p.locate(); err != nil {
		return nil, err
	}
	if err := p.chooseBackend(); err != nil {
		return nil, err
	}
	if err := p.recover(); err != nil {
		return nil, err
	}
	if err := p.refill(); err != nil {
		return nil, err
	}
	p.ensureKey()
	return p, nil
}

// openDirectory opens and locks the pool's directory, which it makes where nothing is expected.
func (p *Pool) openDirectory() error {
	if p.Expect == "" {
		if err := kernel.MkdirAll(p.path, dirMode); err != nil {
			return err
		}
		if err := syncDirectory(filepath.Dir(p.path)); err != nil {
			return err
		}
	}
	dir, err := kernel.Open(p.path, unix.O_DIRECTORY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no directory, but pool %s was there; mount its disk", volume.ErrUnavailable, p.Expect)
	case err != nil:
		return err
	}
	p.here = dir
	err = kernel.IgnoreEINTR(func() error { return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w: another process has it open", volume.ErrUnavailable)
	}
	if err == nil {
		p.location, err = mount.Locate(dir)
	}
	return err
}

// openParts opens what is in the directory, and makes what is missing.
func (p *Pool) openParts() (err error) {
	if p.dir, err = scratch.Open(p.path); err != nil {
		return err
	}
	for name, part := range map[string]**os.File{volumesName: &p.volumes, snapshotsName: &p.snapshots, recordsName: &p.records} {
		if *part, err = p.openPart(name); err != nil {
			return err
		}
	}
	return kernel.Sync(p.here)
}

// locate tells whose mounts are to be taken for volumes of the pool.
func (p *Pool) locate() error {
	st, err := kernel.Fstat(int(p.volumes.Fd()))
	if err == nil {
		err = p.Locations.learn(p.path, location{p.location, st.Dev})
	}
	return err
}

// keepName is a file that keeps a directory from being empty: an empty one is removed with the last volume in it.
const keepName = ".keep"

func (p *Pool) openPart(name string) (*os.File, error) {
	here := int(p.here.Fd())
	if err := kernel.Mkdirat(here, name, dirMode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %s: %w", name, p.wantsRoom(err))
	}
	fd, err := kernel.Openat(here, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	part := os.NewFile(uintptr(fd), filepath.Join(p.path, name))
	keep, err := kernel.Create(fmt.Sprintf("/proc/self/fd/%d/%s", fd, keepName), os.O_RDONLY, 0o600)
	if err == nil {
		err = errors.Join(kernel.Sync(part), keep.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make %s/%s: %w", name, keepName, p.wantsRoom(err)), part.Close())
	}
	return part, nil
}

// Describe says what was found when the pool was opened, except Class and Provisioned. Failed is that of the last Look.
func (p *Pool) Describe() local.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

// Look returns how full the disk is, and writes a little: a file system that cannot write it down turns itself off within
// seconds, which the next Look sees. It waits for no disk that is busy. The error is [local.ErrUnwritable] where nothing can
// be written, and [volume.ErrUnavailable] where the path leads to the pool no more, or its file system does not work any
// more.
func (p *Pool) Look() (total, free int64, err error) {
	err = p.dir.CheckPath()
	switch {
	case errors.Is(err, scratch.ErrCovered):
		return 0, 0, fmt.Errorf("%w: %s does not lead to pool %s any more; mount its disk there again", volume.ErrUnavailable, p.path,
			p.identity.UUID)
	case err != nil:
		return 0, 0, fmt.Errorf("%w: %w", volume.ErrUnavailable, err)
	}
	// A file system that was shut down tells how full it was.
	if _, err := kernel.Lstatat(int(p.here.Fd()), poolFile); err != nil {
		return 0, 0, fmt.Errorf("%w: look at %s: %w", volume.ErrUnavailable, poolFile, err)
	}
	space, err := p.dir.Space()
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", volume.ErrUnavailable, err)
	}
	p.lookAgain()
	total, free = space.Total.Bytes, roomIn(space)
	return total, free, p.tryWrite()
}

// tryWrite changes an attribute. That takes no room, and every file system does it in a transaction of its journal; of one
// whose journal has ended some would take new times, or bytes of a file, without an error.
func (p *Pool) tryWrite() error {
	err := kernel.Fsetxattr(int(p.records.Fd()), "user.katbox.looked", strconv.AppendInt(nil, time.Now().UnixNano(), 16))
	if err == nil || noRoom(err) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a full disk can be written to again once something is deleted
	}
	return fmt.Errorf("%w: %w; look for errors of the disk in the kernel's log, repair the disk, and mount it again",
		local.ErrUnwritable, err)
}

// leastPerInode is how many bytes of a volume's size come with an inode, unless the disk has fewer. An ext4 of its own
// would have as many.
const leastPerInode = 16 << 10

// perInode is how many bytes of the size of a volume come with an inode, so that no volume takes more than its share of
// them; 0 where they have no limit, as on btrfs.
func perInode(space volume.Space) int64 {
	if space.Total.Inodes == 0 {
		return 0
	}
	return max(leastPerInode, (space.Total.Bytes+space.Total.Inodes-1)/space.Total.Inodes)
}

// roomIn returns the bytes that are free for volumes: not more than have inodes.
func roomIn(space volume.Space) int64 {
	per := perInode(space)
	if per == 0 || space.Free.Inodes > space.Free.Bytes/per {
		return space.Free.Bytes
	}
	return space.Free.Inodes * per
}

// lookAgain tries once more what images failed for.
func (p *Pool) lookAgain() {
	if p.identity.Backend != local.Image || p.Describe().Failed == "" {
		return
	}
	failed := ""
	if err := p.canAttach(); err != nil {
		failed = volume.OneLine(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found.Failed = failed
}

// Close gives the directory back. It is called once, after all other calls.
func (p *Pool) Close() error {
	var errs []error
	if p.ids != nil {
		errs = append(errs, p.ids.release())
	}
	for _, file := range []*os.File{p.volumes, p.snapshots, p.records, p.reserve.file} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	if p.dir != nil {
		errs = append(errs, p.dir.Close())
	}
	if p.here != nil {
		errs = append(errs, p.here.Close())
	}
	return errors.Join(errs...)
}

// part returns the name of the directory in which the data of a record is, and that directory.
func (p *Pool) part(r local.Record) (string, *os.File) {
	if r.IsSnapshot() {
		return snapshotsName, p.snapshots
	}
	return volumesName, p.volumes
}

// place is where the data of a record is.
func (p *Pool) place(r local.Record) volume.Place {
	part, _ := p.part(r)
	return volume.Place{Pod: volume.PodUID(part), ID: volume.ID(r.Name)}
}

func checkName(name string) error {
	_, err := volume.ParseID("name", name)
	return err
}

func syncDirectory(path string) error {
	dir, err := kernel.Open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(kernel.Sync(dir), dir.Close())
}

// wantsRoom is [volume.WantsRoom] for the pool's directory.
func (p *Pool) wantsRoom(err error) error {
	return volume.WantsRoom(err, "in the pool's directory "+p.path)
}

// wrap puts what was tried in front of an error. It returns nil for nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
