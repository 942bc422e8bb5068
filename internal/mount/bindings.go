package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Binding is a bind mount of a directory, which may have been removed since.
type Binding struct {
	// Source is the path of the directory that is mounted, relative to the
	// directory that was asked about. Directories at any depth count: kubelet
	// mounts of a subPath show as <pod>/<volume>/<more>.
	Source string
	// Target is the mount point.
	Target string
	// ReadOnly says that the mount itself refuses writes.
	ReadOnly bool
}

// Bindings returns the bind mounts whose source is a directory below dir and
// whose mount point is below the directory below. Both may be reached through
// symbolic links; a binding's Target begins with below as it was given, so that
// it compares equal to the paths that others build from it. Without the
// directory below there are none: no kubelet has run yet. The order is that of
// the mount table, so of two mounts at one target the upper comes later.
//
// It reads the whole mount table, once: meant for the start, not for each call.
func Bindings(dir, below string) ([]Binding, error) {
	source, id, err := resolve(dir)
	if err != nil {
		return nil, fmt.Errorf("bindings of %s: %w", dir, err)
	}
	targets, _, err := resolve(below)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bindings below %s: %w", below, err)
	}
	table, err := readTable()
	if err != nil {
		return nil, fmt.Errorf("bindings of %s: %w", dir, err)
	}
	here, err := locate(table, source, id)
	if err != nil {
		return nil, fmt.Errorf("bindings of %s: %w", dir, err)
	}
	bindings := match(table, here, targets)
	for i := range bindings {
		rest, _ := within(bindings[i].Target, targets)
		bindings[i].Target = filepath.Join(below, rest)
	}
	return bindings, nil
}

// BoundAt returns where the directory name, a path relative to the directory
// dir, or anything below it is mounted, wherever that is. It reads the whole
// mount table.
func BoundAt(dir, name string) ([]string, error) {
	bindings, err := Bindings(dir, "/")
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, b := range bindings {
		if _, ok := within(b.Source, name); ok {
			targets = append(targets, b.Target)
		}
	}
	return targets, nil
}

// match returns the bindings of directories below here with mount points below
// targets. What tells that two mounts show the same directory is the file
// system and the path in it, for a mount has no memory of the path it was bound
// from.
func match(table []*mountinfo.Info, here place, targets string) []Binding {
	var bindings []Binding
	for _, info := range table {
		if !here.sameFileSystem(info) {
			continue
		}
		root := cutDeleted(info.Root)
		source, ok := within(root, here.root)
		if !ok || source == "" {
			continue
		}
		if rest, ok := within(info.Mountpoint, targets); !ok || rest == "" {
			continue
		}
		bindings = append(bindings, Binding{
			Source:   source,
			Target:   info.Mountpoint,
			ReadOnly: slices.Contains(strings.Split(info.Options, ","), "ro"),
		})
	}
	return bindings
}
