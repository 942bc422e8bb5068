package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Above is the Source of a binding of the directory that was asked about, or of one that it is in.
const Above = "."

// Binding is a bind mount of a directory, which may have been removed since.
type Binding struct {
	// Source is the path of the directory that is mounted, relative to the directory that was asked
	// about, or [Above]. Kubelet mounts of a subPath show as <pod>/<volume>/<more>.
	Source string
	// Target is the mount point.
	Target   string
	ReadOnly bool
}

// Bindings returns the bind mounts of directories below the open directory dir, and those of dir
// and of directories above it whose mount point is below the directory pods. A mount that covers
// the path of dir changes nothing.
//
// The Target of a binding below pods begins with pods as the caller gave it, which may lead through
// symbolic links and need not exist. Other targets are without symbolic links. Of two mounts at one
// target the upper comes later.
//
// It reads the whole mount table, for the start and for doubtful cases, not for each call.
func Bindings(dir *os.File, pods string) ([]Binding, error) {
	source, id, err := resolveOpen(int(dir.Fd()), dir.Name())
	if err != nil {
		return nil, fmt.Errorf("bindings of %s: %w", dir.Name(), err)
	}
	resolvedPods, _, err := resolve(pods)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bindings below %s: %w", pods, err)
	}
	table, err := readTable()
	if err != nil {
		return nil, fmt.Errorf("bindings of %s: %w", dir.Name(), err)
	}
	here, err := locate(table, source, id)
	if err != nil {
		return nil, fmt.Errorf("bindings of %s: %w", dir.Name(), err)
	}
	bindings := match(table, here, resolvedPods)
	for i := range bindings {
		if rest, ok := within(bindings[i].Target, resolvedPods); ok && resolvedPods != "" {
			bindings[i].Target = filepath.Join(pods, rest)
		}
	}
	return bindings, nil
}

// match returns the bindings of directories below here, and of here and those above it that are
// mounted below pods. Two mounts show the same directory if file system and path in it are the
// same: a mount does not know the path that it was bound from.
func match(table []*mountinfo.Info, here directory, pods string) []Binding {
	var bindings []Binding
	for _, info := range table {
		if !here.sameFileSystem(info) {
			continue
		}
		root := cutDeleted(info.Root)
		source, ok := within(root, here.root)
		if !ok || source == "" {
			_, above := within(here.root, root)
			if target, below := within(info.Mountpoint, pods); !above || !below || target == "" || pods == "" {
				continue
			}
			source = Above
		}
		bindings = append(bindings, Binding{
			Source:   source,
			Target:   info.Mountpoint,
			ReadOnly: slices.Contains(strings.Split(info.Options, ","), "ro"),
		})
	}
	return bindings
}

// Overlap reports whether two directories are the same or one lies in the other, through any symbolic
// links and mounts. A directory that does not exist counts where it would be. It reads the whole
// mount table, for the start.
func Overlap(a, b string) (bool, error) {
	first, second, err := findBoth(a, b)
	return err == nil && (first.in(second) || second.in(first)), err
}

// SameFileSystem reports whether two directories are on one file system. Subvolumes of btrfs are,
// although stat(2) gives each a device number of its own. A directory that does not exist counts
// where it would be. It reads the whole mount table, for the start.
func SameFileSystem(a, b string) (bool, error) {
	first, second, err := findBoth(a, b)
	return err == nil && first.sameFileSystem(second.mount), err
}

// findBoth finds two directories in one reading of the mount table.
func findBoth(a, b string) (first, second directory, err error) {
	table, err := readTable()
	if err == nil {
		first, err = find(table, a)
	}
	if err == nil {
		second, err = find(table, b)
	}
	return first, second, err
}

// in reports whether d is o or lies in it.
func (d directory) in(o directory) bool {
	_, byPath := within(d.path, o.path)
	_, byRoot := within(d.root, o.root)
	return byPath || byRoot && d.sameFileSystem(o.mount)
}

// find finds a directory, or where it would be.
func find(table []*mountinfo.Info, dir string) (directory, error) {
	missing := ""
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		resolved, id, err := resolve(at)
		if at != "/" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)) {
			missing = path.Join(filepath.Base(at), missing)
			continue
		}
		if err != nil {
			return directory{}, err
		}
		here, err := locate(table, resolved, id)
		if err != nil {
			return directory{}, fmt.Errorf("where is %s: %w", dir, err)
		}
		here.root, here.path = path.Join(here.root, missing), path.Join(resolved, missing)
		return here, nil
	}
}

// Propagates reports whether mounts made below the directory dir reach other mount namespaces, that
// is, whether dir is on a shared mount. It reads the whole mount table, for the start.
func Propagates(dir string) (bool, error) {
	_, here, err := lookUp(dir)
	return err == nil && strings.HasPrefix(here.mount.Optional, "shared:"), wrap(err, "propagation of %s", dir)
}
