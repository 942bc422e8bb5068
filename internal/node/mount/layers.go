package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Layer is one of the mounts at a path.
type Layer struct {
	// Showing compares it with the directory that should be mounted; it is none of NotMounted and ShowsBeneath.
	Showing Showing
	// What describes it to people: file system, source, and the path inside of it.
	What string
}

// Layers returns what is mounted at target, the lowest first, compared with the directory source. It goes by the mount
// table alone, which it reads, and asks neither what is mounted nor the file system of source: a disk that is dead or
// a FUSE server that has ended answers nothing.
func (m *Mounter) Layers(target, source string) ([]Layer, error) {
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	mounts, err := stack(table, target)
	if err != nil || len(mounts) == 0 {
		return nil, err
	}
	should, err := findUnanswered(table, source)
	if err != nil {
		return nil, fmt.Errorf("where is %s: %w", shown(source), err)
	}
	layers := make([]Layer, len(mounts))
	for i, info := range mounts {
		layers[i] = Layer{Showing: should.shownBy(info), What: describe(info)}
	}
	return layers, nil
}

// shownBy compares a mount with the directory, by what the mount table has of both.
func (d directory) shownBy(info *mountinfo.Info) Showing {
	root := cutDeleted(info.Root)
	switch {
	case d.sameFileSystem(info) && root == d.root && root == info.Root:
		return ShowsSource
	case d.sameFileSystem(info) && root == d.root:
		return ShowsRemoved
	case path.Base(root) == path.Base(d.root) && path.Base(path.Dir(root)) == path.Base(path.Dir(d.root)):
		return ShowsNamesake
	}
	return ShowsOther
}

// describe describes a mount to people. Pods choose some of the texts.
func describe(info *mountinfo.Info) string {
	return fmt.Sprintf("%.40q of %.200q, %.200q in it", info.FSType, info.Source, info.Root)
}

// stack returns the mounts at a path, the lowest first: each is mounted on the one before.
func stack(table []*mountinfo.Info, target string) ([]*mountinfo.Info, error) {
	target = filepath.Clean(target)
	above, _, err := resolve(filepath.Dir(target))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, err
	}
	at := filepath.Join(above, filepath.Base(target))
	var mounts []*mountinfo.Info
	for _, info := range table {
		if info.Mountpoint == at {
			mounts = append(mounts, info)
		}
	}
	for i := range mounts {
		on := func(info *mountinfo.Info) bool { return i > 0 && info.Parent == mounts[i-1].ID }
		lowest := func(info *mountinfo.Info) bool {
			return !slices.ContainsFunc(mounts, func(below *mountinfo.Info) bool { return below.ID == info.Parent })
		}
		for _, is := range []func(*mountinfo.Info) bool{on, lowest} {
			if j := slices.IndexFunc(mounts[i:], is); j >= 0 {
				mounts[i], mounts[i+j] = mounts[i+j], mounts[i]
				break
			}
		}
	}
	return mounts, nil
}

// findUnanswered finds a directory whose file system may not answer. What cannot be opened counts where it would be.
func findUnanswered(table []*mountinfo.Info, dir string) (directory, error) {
	missing := ""
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		resolved, id, err := resolve(at)
		if err != nil {
			if at == "/" || strings.Trim(at, "/") == strings.Trim(handles, "/") {
				return directory{}, err
			}
			missing = path.Join(filepath.Base(at), missing)
			continue
		}
		here, err := locate(table, resolved, id)
		if err != nil {
			return directory{}, err
		}
		here.root, here.path = path.Join(here.root, missing), path.Join(resolved, missing)
		return here, nil
	}
}
