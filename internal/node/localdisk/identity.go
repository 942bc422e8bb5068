package localdisk

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// identity is what pool.json says.
type identity struct {
	Version int    `json:"version"`
	UUID    string `json:"uuid"`
	// Key proves that a node has the disk. Earlier versions made none; they ignore it.
	Key local.Key `json:"key,omitempty"`
	// Backend is what keeps the volumes, for good.
	Backend local.Backend `json:"backend"`
}

// formatVersion is that of the format of pool.json and of the records.
const formatVersion = 1

// newPrefix begins the name of a file that is being written.
const newPrefix = ".new-"

// identify reads pool.json, or makes it.
func (p *Pool) identify() error {
	found, err := p.readIdentity()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.makeIdentity()
	case err != nil:
		return err
	case p.Expect != "" && p.Expect != found.UUID:
		return fmt.Errorf("%w: pool %s is there, where pool %s was; mount the right disk there", volume.ErrConflict, found.UUID, p.Expect)
	case p.Backend != local.Auto && p.Backend != found.Backend:
		return fmt.Errorf("%w: it keeps its volumes as %s, not as %s, and cannot change that; "+
			"to do so, delete its volumes and empty the directory", volume.ErrConflict, found.Backend, p.Backend)
	}
	p.identity = found
	return nil
}

// makeIdentity makes the pool. The identity is written last, with what it depends on.
func (p *Pool) makeIdentity() error {
	foreign, err := p.foreign()
	switch {
	case err != nil:
		return err
	case foreign != "" && p.Expect != "":
		return fmt.Errorf("%w: it has no %s, where pool %s was; mount its disk there", volume.ErrUnavailable, poolFile, p.Expect)
	case foreign != "":
		return volume.Invalid("path", fmt.Sprintf("has %.80q and no %s; only an empty directory is made a pool", foreign, poolFile))
	case p.Expect != "":
		return fmt.Errorf("%w: the directory is empty, where pool %s was; mount its disk there", volume.ErrUnavailable, p.Expect)
	}
	if err := p.onItsOwn(); err != nil {
		return err
	}
	chosen, err := p.detect()
	if err != nil {
		return err
	}
	p.identity = identity{Version: formatVersion, UUID: newUUID(), Key: local.NewKey(), Backend: chosen}
	if err := p.writeIdentity(p.identity); err != nil {
		return fmt.Errorf("make %s: %w", poolFile, p.wantsRoom(err))
	}
	p.Log.Info("a new pool", "pool", p.identity.UUID, "path", p.path, "backend", string(chosen))
	return nil
}

func (p *Pool) writeIdentity(i identity) error {
	content, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return writeFile(p.here, poolFile, append(content, '\n'))
}

// ensureKey gives a key to a pool that an earlier version has made. A disk that is too full for it gets one at a later
// Open: until then the pool cannot move to another node by itself.
func (p *Pool) ensureKey() {
	if p.identity.Key != "" {
		return
	}
	keyed := p.identity
	keyed.Key = local.NewKey()
	if err := p.writeIdentity(keyed); err != nil {
		p.Log.Error(err, "the pool gets no key, and needs a person's word to move to another node; the next start tries again",
			"pool", p.identity.UUID, "path", p.path)
		return
	}
	p.identity, p.found.Key = keyed, keyed.Key
}

// onItsOwn refuses a new pool on a file system that is to have none.
func (p *Pool) onItsOwn() error {
	for _, path := range p.NotOn {
		dir, err := kernel.Open(path, unix.O_DIRECTORY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		there, err := mount.Locate(dir)
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
		if there.Device == p.location.Device {
			return volume.Invalid("path", fmt.Sprintf("is on the file system of %s, so its disk is not mounted: mount it there; "+
				"to have a pool on the node's own disk, give --local-pool the option on-root-disk",
				filepath.Join("/", strings.TrimPrefix(path, p.HostRoot))))
		}
	}
	return nil
}

// foreign returns the name of something in the directory that no unfinished attempt to make a pool has left.
func (p *Pool) foreign() (string, error) {
	names, err := namesIn(p.here)
	for _, name := range names {
		if name != lostAndFound && !strings.HasPrefix(name, newPrefix) {
			return name, err
		}
	}
	return "", err
}

func (p *Pool) readIdentity() (found identity, err error) {
	content, err := readFile(p.here, poolFile)
	if err != nil {
		return identity{}, err
	}
	if err := json.Unmarshal(content, &found); err != nil {
		return identity{}, fmt.Errorf("%s cannot be read; restore it: %w", poolFile, err)
	}
	switch {
	case found.Version > formatVersion:
		return identity{}, fmt.Errorf("%s is of a later version of Katbox: its format is version %d, this one knows %d", poolFile,
			found.Version, formatVersion)
	case found.Version < 1 || !pools.IsUUID(found.UUID):
		return identity{}, fmt.Errorf("%s has no version or no UUID; restore it", poolFile)
	case found.Key != "" && !found.Key.Valid():
		return identity{}, fmt.Errorf("%s has a key that is none; restore it, or remove the key from it", poolFile)
	}
	return found, nil
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// namesIn returns the names in an open directory, sorted.
func namesIn(dir *os.File) ([]string, error) {
	return kernel.Names(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
}

// largest is more than any file of a pool's own has.
const largest = 1 << 20

// readFile reads a file of the pool's own.
func readFile(dir *os.File, name string) ([]byte, error) {
	return kernel.ReadFile(int(dir.Fd()), name, unix.O_NOFOLLOW|unix.O_NONBLOCK, largest)
}

// writeFile replaces a file as a whole, durably. The error is [local.ErrUnwritable] if the disk has taken nothing.
func writeFile(dir *os.File, name string, content []byte) error {
	fresh := newPrefix + rand.Text()
	file, err := kernel.Create(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), fresh), os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return unwritten(err)
	}
	err = kernel.WriteAt(file, content, 0)
	if err == nil {
		err = kernel.Sync(file)
	}
	err = unwritten(errors.Join(err, file.Close()))
	if err == nil {
		err = kernel.Renameat(int(dir.Fd()), fresh, int(dir.Fd()), name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(kernel.Unlinkat(int(dir.Fd()), fresh)))
	}
	return kernel.Sync(dir)
}

// unwritten marks the error of a write, before which nothing was changed, if it means that the disk takes no writes.
func unwritten(err error) error {
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EIO) {
		return fmt.Errorf("%w: %w", local.ErrUnwritable, err)
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
