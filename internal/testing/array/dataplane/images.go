package dataplane

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// suffix of the files with volumes and snapshots. A file with this name is complete.
const suffix = ".img"

func (k *Kernel) image(id string) string { return filepath.Join(k.dir, id+suffix) }

// CreateDisk makes the file of a volume, and puts its device or its file system where clients get it from.
func (k *Kernel) CreateDisk(d Disk) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh := false
	if _, err := os.Stat(k.image(d.ID)); err != nil {
		if err := k.newImage(d); err != nil {
			return err
		}
		fresh = true
	}
	return k.place(d, fresh)
}

// Clone makes a reflink of a file.
func (k *Kernel) Clone(d Disk, source string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.reflink(source, d.ID); err != nil {
		return err
	}
	return k.place(d, false)
}

// Snapshot makes one, too, which no client can reach.
func (k *Kernel) Snapshot(snapshot string, of Disk) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reflink(of.ID, snapshot)
}

// Expand makes the file, its device and a file system larger.
func (k *Kernel) Expand(d Disk) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.place(d, false)
}

// Delete removes a file and what was made of it.
func (k *Kernel) Delete(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.removeDevice(id); err != nil {
		return err
	}
	loop, err := k.loop(id)
	if err != nil {
		return err
	}
	if loop != "" {
		if err := k.unmount(loop, ""); err != nil {
			return err
		}
		// The kernel waits with it for the last that has the device open: nfsd keeps files open for a while.
		if _, err := run("losetup", "--detach", loop); err != nil {
			return err
		}
	}
	return gone(os.Remove(k.image(id)))
}

// newImage makes an empty volume. It has its name when it is complete.
func (k *Kernel) newImage(d Disk) error {
	made := k.image(d.ID) + ".new"
	if err := os.WriteFile(made, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(made, d.Size); err != nil {
		return err
	}
	if !d.Block {
		if _, err := run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "nodiscard,lazy_itable_init=1", made); err != nil {
			return err
		}
	}
	return os.Rename(made, k.image(d.ID))
}

// reflink copies a volume or a snapshot. Nothing is written to a file system meanwhile.
func (k *Kernel) reflink(from, to string) (err error) {
	if _, err := os.Stat(k.image(to)); err == nil {
		return nil
	}
	loop, err := k.loop(from)
	if err != nil {
		return err
	}
	if loop != "" {
		at, err := mountsOf(loop)
		if err != nil {
			return err
		}
		if len(at) > 0 {
			if _, err := run("fsfreeze", "--freeze", at[0]); err != nil {
				return err
			}
			defer func() {
				if _, thawed := run("fsfreeze", "--unfreeze", at[0]); err == nil {
					err = thawed
				}
			}()
		} else if _, err := run("blockdev", "--flushbufs", loop); err != nil {
			return err
		}
	}
	made := k.image(to) + ".new"
	if _, err := run("cp", "--reflink=always", k.image(from), made); err != nil {
		return err
	}
	return os.Rename(made, k.image(to))
}

// place brings a volume to its size, and to where clients get it from.
func (k *Kernel) place(d Disk, fresh bool) error {
	file, err := os.Stat(k.image(d.ID))
	if err != nil {
		return err
	}
	if file.Size() > d.Size {
		return fmt.Errorf("volume %s has %d bytes and cannot shrink to %d", d.ID, file.Size(), d.Size)
	}
	if err := os.Truncate(k.image(d.ID), d.Size); err != nil {
		return err
	}
	loop, err := k.loop(d.ID)
	if err != nil {
		return err
	}
	if loop == "" {
		if loop, err = run("losetup", "--find", "--show", k.image(d.ID)); err != nil {
			return err
		}
	} else if _, err := run("losetup", "--set-capacity", loop); err != nil {
		return err
	}
	if d.Block {
		return k.newDevice(d.ID, loop)
	}
	if err := k.unmount(loop, d.Path); err != nil || d.Path == "" {
		return err
	}
	return k.mount(d, loop, fresh)
}

func (k *Kernel) mount(d Disk, loop string, fresh bool) error {
	at, err := mountsOf(loop)
	if err != nil {
		return err
	}
	if len(at) == 0 {
		if err := os.MkdirAll(d.Path, 0o755); err != nil {
			return err
		}
		if _, err := run("mount", "-t", "ext4", "-o", "noinit_itable", loop, d.Path); err != nil {
			return err
		}
	}
	k.paths[d.Path] = d.ID
	if fresh {
		// Any user of a client may use a new volume, and finds nothing in it.
		if err := os.Chmod(d.Path, 0o777); err != nil {
			return err
		}
		if err := gone(os.Remove(filepath.Join(d.Path, "lost+found"))); err != nil {
			return err
		}
	}
	_, err = run("resize2fs", loop)
	return err
}

// unmount takes the file system on a device away from all paths but one.
func (k *Kernel) unmount(loop, except string) error {
	at, err := mountsOf(loop)
	if err != nil {
		return err
	}
	for _, path := range at {
		if path == except {
			continue
		}
		// nfsd keeps files open for a while that clients had open.
		if _, err := run("umount", "--lazy", path); err != nil {
			return err
		}
		delete(k.paths, path)
		if err := gone(os.Remove(path)); err != nil {
			return err
		}
	}
	return nil
}

// loop returns the device of a volume; empty when it has none.
func (k *Kernel) loop(id string) (string, error) {
	out, err := run("losetup", "--noheadings", "--output", "NAME", "--associated", k.image(id))
	device, _, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(device), err
}

// mountsOf returns where a device is mounted.
func mountsOf(device string) ([]string, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var at []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == device {
			at = append(at, unescape(fields[1]))
		}
	}
	return at, lines.Err()
}
