package mount

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// NewExecutable returns a [Mounter] whose mounts do not inherit noexec from the mount
// that their source is on. Where the options have noexec, the mount has it.
//
// The kernel may refuse to clear the flag, because it is locked inside a user namespace.
// Then the mount is made with noexec, and locked is called with the kernel's error, once.
// Only the option exec makes that an error of [Mounter.Mount].
func NewExecutable(locked func(error)) *Mounter {
	var once sync.Once
	m := New()
	m.locked = func(err error) { once.Do(func() { locked(err) }) }
	return m
}

// wished is what m does to a mount's flags, where the options ask for flags.
func (m *Mounter) wished(flags change) change {
	if m.locked != nil && (flags.set|flags.clear)&unix.MOUNT_ATTR_NOEXEC == 0 {
		flags.clear |= unix.MOUNT_ATTR_NOEXEC
	}
	return flags
}

// setFlags carries out set with the flags that m wishes or, where the kernel refuses that,
// with those that the options ask for.
func (m *Mounter) setFlags(flags change, set func(change) error) error {
	wished := m.wished(flags)
	refused := set(wished)
	if wished == flags || !errors.Is(refused, unix.EPERM) {
		return refused
	}
	if err := set(flags); err != nil {
		return err
	}
	m.locked(refused)
	return nil
}

// Noexec tells whether the mount that path is on refuses to execute files.
func Noexec(path string) (bool, error) { return hasFlag(path, unix.ST_NOEXEC) }
