package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	mountutils "k8s.io/mount-utils"
)

// The methods in this file make up mountutils.Interface together with those of Mounter that Katbox
// calls. Katbox does not call them.
var _ mountutils.Interface = (*Mounter)(nil)

// MountSensitive is Mount; it refuses sensitive options, which a bind mount does not have.
func (m *Mounter) MountSensitive(source, target, fstype string, options, sensitiveOptions []string) error {
	if len(sensitiveOptions) > 0 {
		return fmt.Errorf("mount %s on %s: a bind mount has no sensitive options", source, target)
	}
	return m.Mount(source, target, fstype, options)
}

// MountSensitiveWithoutSystemd is MountSensitive: systemd has no part in it.
func (m *Mounter) MountSensitiveWithoutSystemd(source, target, fstype string, options, sensitiveOptions []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// MountSensitiveWithoutSystemdWithMountFlags is MountSensitive; it refuses mount flags, which are
// arguments of a mount command that is not run.
func (m *Mounter) MountSensitiveWithoutSystemdWithMountFlags(
	source, target, fstype string, options, sensitiveOptions, mountFlags []string,
) error {
	if len(mountFlags) > 0 {
		return fmt.Errorf("mount %s on %s: there is no mount command to take the flags %q", source, target, mountFlags)
	}
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// IsLikelyNotMountPoint is the opposite of [Mounter.IsMountPoint], and as certain. It returns true
// together with an error, as mount-utils does.
func (m *Mounter) IsLikelyNotMountPoint(path string) (bool, error) {
	mounted, err := m.IsMountPoint(path)
	return !mounted, err
}

// CanSafelySkipMountPointCheck is false: [Mounter.Unmount] of a path that is not a mount point is
// an error.
func (m *Mounter) CanSafelySkipMountPointCheck() bool { return false }

// List returns all mounts of this process' mount namespace. It reads the whole mount table.
func (m *Mounter) List() ([]mountutils.MountPoint, error) {
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	points := make([]mountutils.MountPoint, 0, len(table))
	for _, info := range table {
		points = append(points, mountutils.MountPoint{
			Device: info.Source,
			Path:   info.Mountpoint,
			Type:   info.FSType,
			Opts:   strings.Split(info.Options+","+info.VFSOptions, ","),
		})
	}
	return points, nil
}

// GetMountRefs returns the other mount points of the directory at pathname, which are none when
// there is no such directory. It reads the whole mount table.
func (m *Mounter) GetMountRefs(pathname string) ([]string, error) {
	absolute, err := filepath.Abs(pathname)
	if err != nil {
		return nil, fmt.Errorf("mount references of %s: %w", pathname, err)
	}
	table, here, err := lookUp(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mount references of %s: %w", pathname, err)
	}
	var refs []string
	for _, info := range table {
		if info != here.mount && here.sameFileSystem(info) && info.Root == here.root {
			refs = append(refs, info.Mountpoint)
		}
	}
	return refs, nil
}
