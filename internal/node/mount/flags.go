package mount

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// bindOption is the option that asks for a bind mount.
const bindOption = "bind"

// stNoSymfollow is ST_NOSYMFOLLOW of statfs(2), which x/sys does not have.
const stNoSymfollow = 0x2000

// change is what options do to the flags of a mount, in MOUNT_ATTR_ values. All flags that it does
// not name stay as they are.
type change struct{ set, clear uint64 }

// knownFlags are the flags that belong to one mount rather than to the whole file system, which is
// all that a bind mount can choose. The atime modes are one field in the kernel, so each of them
// clears the others.
var knownFlags = map[string]change{
	"ro":          {set: unix.MOUNT_ATTR_RDONLY},
	"rw":          {clear: unix.MOUNT_ATTR_RDONLY},
	"nosuid":      {set: unix.MOUNT_ATTR_NOSUID},
	"nodev":       {set: unix.MOUNT_ATTR_NODEV},
	"noexec":      {set: unix.MOUNT_ATTR_NOEXEC},
	"exec":        {clear: unix.MOUNT_ATTR_NOEXEC},
	"nosymfollow": {set: unix.MOUNT_ATTR_NOSYMFOLLOW},
	"nodiratime":  {set: unix.MOUNT_ATTR_NODIRATIME},
	"noatime":     {set: unix.MOUNT_ATTR_NOATIME, clear: unix.MOUNT_ATTR__ATIME},
	"relatime":    {set: unix.MOUNT_ATTR_RELATIME, clear: unix.MOUNT_ATTR__ATIME},
	"strictatime": {set: unix.MOUNT_ATTR_STRICTATIME, clear: unix.MOUNT_ATTR__ATIME},
}

// KnownFlag reports whether flag is a mount flag that [Mounter.Mount] accepts. The option "bind" is
// not a flag.
func KnownFlag(flag string) bool {
	_, ok := knownFlags[flag]
	return ok
}

// parseOptions returns what the options do to a mount's flags, and whether "bind" is among them. Of
// options that contradict each other the last wins, as with mount(8).
func parseOptions(options []string) (c change, bind bool, err error) {
	for _, option := range options {
		if option == bindOption {
			bind = true
			continue
		}
		flag, ok := knownFlags[option]
		if !ok {
			return change{}, false, fmt.Errorf("mount option %q is not one that a bind mount can have", option)
		}
		c.set = c.set&^flag.clear | flag.set
		c.clear = c.clear&^flag.set | flag.clear
	}
	return c, bind, nil
}

// apply returns attributes after the change.
func (c change) apply(attributes uint64) uint64 { return attributes&^c.clear | c.set }

// simple lists the flags that need no arithmetic to get from what statfs(2) reports to what
// mount(2) takes.
var simple = []struct{ st, attribute, ms uint64 }{
	{unix.ST_RDONLY, unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
	{unix.ST_NOSUID, unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
	{unix.ST_NODEV, unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
	{unix.ST_NOEXEC, unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
	{unix.ST_NODIRATIME, unix.MOUNT_ATTR_NODIRATIME, unix.MS_NODIRATIME},
	{stNoSymfollow, unix.MOUNT_ATTR_NOSYMFOLLOW, unix.MS_NOSYMFOLLOW},
}

// attributesOf translates the flags that statfs(2) reports.
func attributesOf(st uint64) (attributes uint64) {
	for _, f := range simple {
		if st&f.st != 0 {
			attributes |= f.attribute
		}
	}
	switch {
	case st&unix.ST_NOATIME != 0:
		attributes |= unix.MOUNT_ATTR_NOATIME
	case st&unix.ST_RELATIME == 0:
		attributes |= unix.MOUNT_ATTR_STRICTATIME
	}
	return attributes
}

// remountFlags translates attributes for mount(2). It always names an atime mode: a remount that
// names none but has, say, nodiratime would silently change strictatime to relatime.
func remountFlags(attributes uint64) (ms uint64) {
	for _, f := range simple {
		if attributes&f.attribute != 0 {
			ms |= f.ms
		}
	}
	switch attributes & unix.MOUNT_ATTR__ATIME {
	case unix.MOUNT_ATTR_NOATIME:
		ms |= unix.MS_NOATIME
	case unix.MOUNT_ATTR_STRICTATIME:
		ms |= unix.MS_STRICTATIME
	default:
		ms |= unix.MS_RELATIME
	}
	return ms
}

// ReadOnly reports whether the mount that path is on refuses writes, because of its own flag or
// because the whole file system is read-only.
func (m *Mounter) ReadOnly(path string) (bool, error) { return hasFlag(path, unix.ST_RDONLY) }

// Noexec reports whether the mount that path is on refuses to execute files.
func Noexec(path string) (bool, error) { return hasFlag(path, unix.ST_NOEXEC) }

// hasFlag reports whether statfs(2) reports a flag of the mount that path is on.
func hasFlag(path string, flag int64) (bool, error) {
	var st unix.Statfs_t
	err := kernel.IgnoreEINTR(func() error { return unix.Statfs(path, &st) })
	return err == nil && st.Flags&flag != 0, wrap(err, "statfs %s", path)
}
