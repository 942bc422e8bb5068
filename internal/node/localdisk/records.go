package localdisk

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// kept is a record as its file has it: one JSON object. A file is named after its volume or snapshot.
type kept struct {
	Version int `json:"version"`
	local.Record
	project
}

// project limits a volume.
type project struct {
	// Project is the ID that the files of the volume have, or the number of its quota group; 0 for none.
	Project uint32 `json:"project,omitempty"`
	// PerInode is how many bytes of its size come with an inode. 0: their number is not limited, as of the volumes of
	// earlier versions.
	PerInode int64 `json:"perInode,omitempty"`
}

// damagedPrefix begins the name of a file that is no record.
const damagedPrefix = ".damaged-"

var errDamaged = errors.New("damaged")

// Records returns the records of all volumes and snapshots, in the order of their names. Files that are damaged are
// set aside and logged. With an error it returns the records that could be read.
func (p *Pool) Records() ([]local.Record, error) {
	all, err := p.all()
	records := make([]local.Record, 0, len(all))
	for _, k := range all {
		records = append(records, k.Record)
	}
	return records, err
}

func (p *Pool) all() (all []kept, err error) {
	names, err := namesIn(p.records)
	if err != nil {
		return nil, fmt.Errorf("records of pool %s: %w", p.path, err)
	}
	var failed []error
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		k, err := p.load(name)
		switch {
		case err == nil:
			all = append(all, k)
		case !errors.Is(err, volume.ErrNotFound):
			failed = append(failed, err)
		}
	}
	return all, errors.Join(failed...)
}

// Load returns the record of a volume or a snapshot. The error is [volume.ErrNotFound] where there is none, or where
// there is a damaged one, which is set aside; [volume.ErrUnavailable] where the disk does not say whether there is one.
func (p *Pool) Load(name string) (local.Record, error) {
	k, err := p.load(name)
	return k.Record, err
}

func (p *Pool) load(name string) (kept, error) {
	if err := checkName(name); err != nil {
		return kept{}, err
	}
	k, err := p.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = volume.ErrNotFound
	case errors.Is(err, errDamaged):
		if err = p.setAside(name, err); err == nil {
			err = volume.ErrNotFound
		}
	case err != nil:
		err = fmt.Errorf("%w: %w", volume.ErrUnavailable, err)
	}
	return k, wrap(err, "record of %s", name)
}

func (p *Pool) read(name string) (k kept, err error) {
	content, err := readFile(p.records, name)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EISDIR):
		return kept{}, fmt.Errorf("%w: %w", errDamaged, err)
	case err != nil:
		return kept{}, err
	}
	if err := json.Unmarshal(content, &k); err != nil {
		return kept{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	switch {
	case k.Version > formatVersion:
		return kept{}, fmt.Errorf("it was written by a later version of Katbox: its format is version %d, this one knows %d",
			k.Version, formatVersion)
	case k.Version < 1 || k.Name != name:
		return kept{}, fmt.Errorf("%w: it is the record of %.80q", errDamaged, k.Name)
	}
	return k, nil
}

// setAside gives a file that is no record another name, and logs it.
func (p *Pool) setAside(name string, cause error) error {
	aside := damagedPrefix + rand.Text()
	here := int(p.records.Fd())
	if err := errors.Join(kernel.Renameat(here, name, here, aside), kernel.Sync(p.records)); err != nil {
		return fmt.Errorf("set the damaged file aside: %w", err)
	}
	p.Log.Error(cause, "the record of a volume cannot be used and is set aside; its data stays", logkeys.Volume, name,
		logkeys.Path, filepath.Join(p.path, recordsName, aside))
	return nil
}

// Save writes a record durably, in place of an earlier one. The error is [volume.ErrNoSpace] on a full disk. Records of
// what is there already may take the reserve, so that it can be retained and deleted.
func (p *Pool) Save(r local.Record) error { return p.save(r, p.project(r.Name)) }

func (p *Pool) save(r local.Record, project project) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	content, err := json.Marshal(kept{Version: formatVersion, Record: r, project: project})
	content = append(content, '\n')
	switch {
	case err != nil:
	case r.State == local.Making:
		err = writeFile(p.records, r.Name, content)
	default:
		err = p.rewrite(r.Name, content)
	}
	return wrap(p.wantsRoom(err), "record of %s", r.Name)
}

// Forget removes a record durably; that there is none is no error.
func (p *Pool) Forget(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := ignoreMissing(kernel.Unlinkat(int(p.records.Fd()), name))
	if err == nil {
		// Also where there is none: an earlier call may have failed after the removal.
		err = kernel.Sync(p.records)
	}
	if err != nil {
		return fmt.Errorf("remove the record of %s: %w", name, err)
	}
	if before := p.setProject(name, project{}); before != 0 && p.ids != nil {
		p.ids.Forgotten(before)
	}
	return nil
}

func (p *Pool) project(name string) project {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.projects[name]
}

func (p *Pool) projectOf(name string) uint32 { return p.project(name).Project }

// limitOf is the limit of a volume's project.
func (p *Pool) limitOf(r local.Record) volume.Size {
	limit := volume.Size{Bytes: r.Size}
	if per := p.project(r.Name).PerInode; per != 0 {
		limit.Inodes = max(1, r.Size/per)
	}
	return limit
}

// setProject notes the project of a volume, none where its ID is 0, and returns the ID that it had.
func (p *Pool) setProject(name string, is project) (before uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before = p.projects[name].Project
	if is.Project == 0 {
		delete(p.projects, name)
	} else {
		p.projects[name] = is
	}
	return before
}
