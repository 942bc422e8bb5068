package staged

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

// Staged is the directory of records. It is safe for concurrent use for different volumes; for one volume
// the caller makes one call at a time. [Staged.All] may run beside: it sees a record as before or as after.
type Staged struct {
	dir *os.Root
	// here is the same directory, to read in it and to make it durable.
	here *os.File
	log  logr.Logger
}

// Open opens the directory, makes it where it is missing, and removes what a crash left of records that were
// being written. The daemon has it open until it ends.
func Open(dir string, log logr.Logger) (*Staged, error) {
	if err := kernel.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the records of staged volumes: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("directory of the records of staged volumes: %w", err)
	}
	here, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("directory of the records of staged volumes: %w", err), root.Close())
	}
	s := &Staged{dir: root, here: here, log: log}
	// The directory's own name has to survive too.
	err = errors.Join(syncDirectory(filepath.Dir(filepath.Clean(dir))), s.removeLeftovers())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("records of staged volumes in %s: %w", dir, err), s.Close())
	}
	return s, nil
}

// Close closes the directory.
func (s *Staged) Close() error { return errors.Join(s.here.Close(), s.dir.Close()) }

func (s *Staged) removeLeftovers() error {
	names, err := s.names()
	for _, name := range names {
		if strings.HasSuffix(name, suffix+newSuffix) {
			err = errors.Join(err, kernel.RemoveIn(s.dir, name))
		}
	}
	return err
}

// Save writes a record durably, in place of an earlier one of the same volume. The error is volume.ErrInvalid
// for an ID that cannot be the name of a file, and volume.ErrNoSpace on a full disk.
func (s *Staged) Save(r Record) error {
	name, err := fileName(r.Volume)
	if err != nil {
		return err
	}
	content, err := encode(r)
	if err == nil {
		err = s.write(name, content)
	}
	if err != nil {
		return fmt.Errorf("record of volume %s: %w", r.Volume, volume.WantsRoom(err, "in "+s.here.Name()))
	}
	return nil
}

// write replaces a file as a whole.
func (s *Staged) write(name string, content []byte) error {
	dir := s.directory()
	fd, err := kernel.Createat(dir, name+newSuffix, unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("create %s: %w", name+newSuffix, err)
	}
	err = kernel.Pwrite(fd, content, 0)
	if err == nil {
		err = kernel.Fsync(fd)
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return fmt.Errorf("write %s: %w", name+newSuffix, err)
	}
	if err := kernel.Renameat(dir, name+newSuffix, dir, name); err != nil {
		return fmt.Errorf("rename %s to %s: %w", name+newSuffix, name, err)
	}
	return s.sync()
}

// Load returns the record of a volume. The error is volume.ErrNotFound where there is none, or where there is
// a damaged one, which is set aside.
func (s *Staged) Load(id string) (Record, error) {
	name, err := fileName(id)
	if err != nil {
		return Record{}, err
	}
	r, err := s.load(name)
	if err != nil {
		return Record{}, fmt.Errorf("record of volume %s: %w", id, err)
	}
	return r, nil
}

func (s *Staged) load(name string) (Record, error) {
	r, err := s.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Record{}, volume.ErrNotFound
	case errors.Is(err, errDamaged):
		if err := s.setAside(name, err); err != nil {
			return Record{}, err
		}
		return Record{}, volume.ErrNotFound
	}
	return r, err
}

// largest is more than any record has.
const largest = 1 << 20

func (s *Staged) read(name string) (Record, error) {
	dir := s.directory()
	st, err := kernel.Lstatat(dir, name)
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("stat %s: %w", name, err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return Record{}, fmt.Errorf("%w: it is no regular file", errDamaged)
	}
	content, err := kernel.ReadFile(dir, name, unix.O_NOFOLLOW, largest)
	if err != nil {
		return Record{}, err
	}
	r, err := decode(content)
	if err != nil {
		return Record{}, err
	}
	if own, err := fileName(r.Volume); err != nil || own != name {
		return Record{}, fmt.Errorf("%w: it is the record of volume %.80q", errDamaged, r.Volume)
	}
	return r, nil
}

// setAside gives a file that is no record a name of its own, and logs it.
func (s *Staged) setAside(name string, cause error) error {
	aside := name + damagedSuffix
	for n := 2; ; n++ {
		_, err := s.dir.Lstat(aside)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		aside = name + damagedSuffix + "-" + strconv.Itoa(n)
	}
	if err := errors.Join(kernel.RenameIn(s.dir, name, aside), s.sync()); err != nil {
		return fmt.Errorf("set the damaged file %s aside: %w", name, err)
	}
	s.log.Error(cause, "the record of a staged volume cannot be used and is set aside",
		logkeys.Path, filepath.Join(s.dir.Name(), aside))
	return nil
}

// All returns all records, in the order of the names of their files. Files that are damaged are set aside and
// logged. With an error it returns the records that could be read.
func (s *Staged) All() ([]Record, error) {
	names, err := s.names()
	if err != nil {
		return nil, fmt.Errorf("records of staged volumes: %w", err)
	}
	var records []Record
	var failed []error
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		r, err := s.load(name)
		switch {
		case err == nil:
			records = append(records, r)
		case !errors.Is(err, volume.ErrNotFound):
			failed = append(failed, fmt.Errorf("record %s: %w", name, err))
		}
	}
	return records, errors.Join(failed...)
}

// names returns the names in the directory, sorted.
func (s *Staged) names() ([]string, error) {
	dir, err := s.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Remove removes the record of a volume durably; that there is none is no error.
func (s *Staged) Remove(id string) error {
	name, err := fileName(id)
	if err != nil {
		return err
	}
	if err = kernel.RemoveIn(s.dir, name); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		// Also where there is none: an earlier call may have failed after the removal.
		err = s.sync()
	}
	if err != nil {
		return fmt.Errorf("remove the record of volume %s: %w", id, err)
	}
	return nil
}

// directory is the open directory. Names in it have no slash.
func (s *Staged) directory() int { return int(s.here.Fd()) }

func (s *Staged) sync() error { return kernel.Fsync(s.directory()) }

func syncDirectory(path string) error {
	dir, err := kernel.Open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(kernel.Sync(dir), dir.Close())
}
