package iscsi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/attach"
)

// use says in a few words what uses a disk: a mount, another block device, or a process that has it
// open. It is empty for a disk that is not used. Of processes it knows those that /proc shows: all
// of the node where the daemon is in the host's PID namespace.
func (i *Initiator) use(d found) (string, error) {
	for _, look := range []func(found) (string, error){i.mounted, i.held, i.looped, i.opened} {
		if by, err := look(d); by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

// mounted finds mounts of the disk, of its partitions and of its node.
func (i *Initiator) mounted(d found) (string, error) {
	table, err := i.table()
	if err != nil {
		return "", err
	}
	numbers := map[uint64]bool{d.Number: true}
	parts, err := i.partitions(d)
	if err != nil {
		return "", err
	}
	for _, part := range parts {
		text, err := attribute(part, "dev")
		if gone(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		number, err := parseNumber(text)
		if err != nil {
			return "", err
		}
		numbers[number] = true
	}
	for _, m := range table {
		switch {
		case numbers[m.Device]:
			return "mounted at " + m.Target, nil
		case isNode(m) && m.Root == "/"+d.Name:
			return "its node is mounted at " + m.Target, nil
		}
	}
	return "", nil
}

// table reads the mount table. The host's root directory shows copies of mounts. They go with what they are copies of.
func (i *Initiator) table() ([]attach.Mount, error) {
	table, err := attach.Table()
	if i.config.Root != "" {
		below := strings.TrimSuffix(i.config.Root, "/") + "/"
		table = slices.DeleteFunc(table, func(m attach.Mount) bool { return strings.HasPrefix(m.Target+"/", below) })
	}
	return table, err
}

// isNode reports whether a mount is of a file in memory, as the nodes of devices are.
func isNode(m attach.Mount) bool { return m.FSType == "devtmpfs" || m.FSType == "tmpfs" }

// namesake returns where the node of a disk is mounted that had a name, and so the number that goes with it, and is gone;
// empty if it is mounted nowhere. The kernel removes the node of a disk that goes.
func (i *Initiator) namesake(name string) (target string, err error) {
	table, err := i.table()
	for _, m := range table {
		if isNode(m) && m.Root == "/"+name+"//deleted" {
			return m.Target, err
		}
	}
	return "", err
}

// partitions returns the directories of a disk's partitions.
func (i *Initiator) partitions(d found) (dirs []string, err error) {
	block := filepath.Join(d.dir, "block", d.Name)
	names, err := entries(block)
	for _, name := range names {
		if strings.HasPrefix(name, d.Name) {
			dirs = append(dirs, filepath.Join(block, name))
		}
	}
	return dirs, err
}

// held finds block devices that are made of the disk, such as those of LVM, MD and dm-crypt.
func (i *Initiator) held(d found) (string, error) {
	parts, err := i.partitions(d)
	if err != nil {
		return "", err
	}
	for _, dir := range append(parts, filepath.Join(d.dir, "block", d.Name)) {
		holders, err := entries(filepath.Join(dir, "holders"))
		if err != nil {
			return "", err
		}
		if len(holders) == 0 {
			continue
		}
		by := "part of " + strings.Join(holders, ", ")
		uuid, err := attribute(i.sysfs, "block", holders[0], "dm", "uuid")
		if err == nil && strings.HasPrefix(uuid, "mpath-") {
			by += ", of multipathd; let it leave the array's disks alone: blacklist in /etc/multipath.conf on the node"
		}
		return by, nil
	}
	return "", nil
}

// looped finds loop devices on top of the disk: the kubelet makes them for block volumes.
func (i *Initiator) looped(d found) (string, error) {
	names, err := entries(filepath.Join(i.sysfs, "block"))
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "loop") {
			continue
		}
		// To ask a loop device is to ask the file system of its file, which may be a server that
		// does not answer.
		file, err := attribute(i.sysfs, "block", name, "loop", "backing_file")
		if err != nil || !strings.HasPrefix(file, "/dev/") && !strings.Contains(file, "/volumeDevices/") {
			continue
		}
		loop, err := kernel.Open(filepath.Join(i.dev, name), os.O_RDONLY)
		if err != nil {
			return "", fmt.Errorf("what %s is: %w", name, err)
		}
		info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
		_ = loop.Close()
		switch {
		case errors.Is(err, unix.ENXIO): // not any more
		case err != nil:
			return "", fmt.Errorf("what %s is: %w", name, err)
		case info.Rdevice == d.Number:
			return "behind " + name, nil
		}
	}
	return "", nil
}

// opened finds a process that has the disk open.
func (i *Initiator) opened(d found) (string, error) {
	processes, err := entries(i.proc)
	if err != nil {
		return "", err
	}
	for _, process := range processes {
		if _, err := strconv.Atoi(process); err != nil {
			continue
		}
		dir := filepath.Join(i.proc, process, "fd")
		// A process that ends, or a zombie.
		files, _ := entries(dir)
		for _, file := range files {
			var st unix.Statx_t
			// Without a question to a file server that may not answer.
			err := kernel.IgnoreEINTR(func() error {
				return unix.Statx(unix.AT_FDCWD, filepath.Join(dir, file), unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st)
			})
			if err == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && unix.Mkdev(st.Rdev_major, st.Rdev_minor) == d.Number {
				return "open in process " + process, nil
			}
		}
	}
	return "", nil
}
