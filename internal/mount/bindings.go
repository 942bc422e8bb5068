package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Above is the Source of a binding of the directory that was asked about, or of one
// that it is in.
const Above = "."

// Binding is a bind mount of a directory, which may have been removed since.
type Binding struct {
	// Source is the path of the directory that is mounted, relative to the
	// directory that was asked about, or [Above]. Directories at any depth count:
	// kubelet mounts of a subPath show as <pod>/<volume>/<more>.
	Source string
	// Target is the mount point.
	Target string
	// ReadOnly says that the mount itself refuses writes.
	ReadOnly bool
}

// Bindings returns the bind mounts of directories below the open directory dir,
// wherever they are in this process' mount namespace, and those of dir itself and of
// directories above it whose mount point is below the directory pods. What counts is
// the directory that is open: what has been mounted over its path since changes
// nothing.
//
// The directory pods may be reached through symbolic links: the Target of a binding
// below it begins with pods as it was given, so that it compares equal to the paths
// that others build from it; other targets are paths without symbolic links. pods
// need not exist. The order is that of the mount table, so of two mounts at one
// target the upper comes later.
//
// It reads the whole mount table: meant for the start and for doubtful cases,
// not for each call.
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

// match returns the bindings of directories below here, and of here and those above
// it that are mounted below pods. What tells that two mounts show the same directory
// is the file system and the path in it, for a mount has no memory of the path it was
// bound from.
func match(table []*mountinfo.Info, here place, pods string) []Binding {
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
