package dataplane

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	configfs = "/sys/kernel/config"
	lio      = configfs + "/target"
	port     = 3260
)

// group is the target's only portal group.
func (k *Kernel) group() string { return filepath.Join(lio, "iscsi", k.target, "tpgt_1") }

func (k *Kernel) acl(iqn string) string { return filepath.Join(k.group(), "acls", iqn) }

// device is what LIO has for a volume. Its name is no other array's.
func (k *Kernel) device(id string) string {
	return filepath.Join(lio, "core", "iblock_0", k.plane()+"-"+id)
}

// lun returns where the group has a volume. Its number there is nothing that a client sees. Only volumes have one: a
// snapshot may have the same number.
func (k *Kernel) lun(id string) (string, error) {
	number, isVolume := strings.CutPrefix(id, "volume-")
	n, err := strconv.ParseUint(number, 16, 32)
	if !isVolume || err != nil {
		return "", fmt.Errorf("%q is no ID of a volume", id)
	}
	return filepath.Join(k.group(), "lun", fmt.Sprintf("lun_%d", n)), nil
}

// names lists a directory of configfs; none when there is no such directory.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	return all, err
}

// link makes a symbolic link that is the only one in its directory.
func link(to, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err := os.Symlink(to, filepath.Join(dir, name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// links returns the symbolic links of a directory: the attributes beside them are files.
func links(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, gone(err)
	}
	var all []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			all = append(all, e.Name())
		}
	}
	return all, nil
}

// unlink removes such a directory and its link.
func unlink(dir string) error {
	all, err := links(dir)
	if err != nil {
		return err
	}
	for _, name := range all {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return gone(os.Remove(dir))
}

// serial returns the serial number of a volume's disk.
func (k *Kernel) serial(id string) string {
	if k.numbers {
		return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(k.target+"/"+id)))
	}
	return id
}

// newDevice makes a device, which initiators know by its serial number.
func (k *Kernel) newDevice(id, loop string) error {
	dir := k.device(id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if enabled, err := os.ReadFile(filepath.Join(dir, "enable")); err != nil {
		return err
	} else if strings.TrimSpace(string(enabled)) != "1" {
		err := errors.Join(write("udev_path="+loop, dir, "control"), write(k.serial(id), dir, "wwn", "vpd_unit_serial"),
			write("1", dir, "enable"))
		if err != nil {
			return fmt.Errorf("volume %s on %s: %w", id, loop, err)
		}
	}
	return nil
}

// removeDevice removes it, from all initiators too. What is no block volume has none.
func (k *Kernel) removeDevice(id string) error {
	if _, err := os.Stat(k.device(id)); err != nil {
		return gone(err)
	}
	lun, err := k.lun(id)
	if err != nil {
		return err
	}
	if err := unlink(lun); err != nil {
		return err
	}
	return gone(os.Remove(k.device(id)))
}

func (k *Kernel) initiators() ([]string, error) { return names(filepath.Join(k.group(), "acls")) }

// mapped returns the LUNs of an initiator.
func (k *Kernel) mapped(iqn string) ([]Export, error) {
	dirs, err := filepath.Glob(filepath.Join(k.acl(iqn), "lun_*"))
	if err != nil {
		return nil, err
	}
	var all []Export
	for _, dir := range dirs {
		volumes, err := links(dir)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "lun_"))
		if err != nil {
			return nil, err
		}
		for _, id := range volumes {
			all = append(all, Export{Volume: id, IQN: iqn, LUN: n})
		}
	}
	return all, nil
}

// Admit makes a record of an initiator, which logs in with the credentials of the last Front.
func (k *Kernel) Admit(iqn string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := os.MkdirAll(k.acl(iqn), 0o755); err != nil {
		return err
	}
	return k.identify(iqn)
}

func (k *Kernel) identify(iqn string) error {
	return errors.Join(write(k.user, k.acl(iqn), "auth", "userid"), write(k.secret, k.acl(iqn), "auth", "password"))
}

// Dismiss removes the record of an initiator.
func (k *Kernel) Dismiss(iqn string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	mapped, err := k.mapped(iqn)
	if err != nil {
		return err
	}
	for _, e := range mapped {
		if err := k.unmapLUN(e); err != nil {
			return err
		}
	}
	return gone(os.Remove(k.acl(iqn)))
}

func (k *Kernel) mappedAt(e Export) string {
	return filepath.Join(k.acl(e.IQN), "lun_"+strconv.Itoa(e.LUN))
}

func (k *Kernel) mapLUN(e Export, readOnly bool) error {
	lun, err := k.lun(e.Volume)
	if err != nil {
		return err
	}
	if err := link(k.device(e.Volume), lun, e.Volume); err != nil {
		return fmt.Errorf("volume %s as a LUN: %w", e.Volume, err)
	}
	at := k.mappedAt(e)
	if err := link(lun, at, e.Volume); err != nil {
		return fmt.Errorf("volume %s to %s: %w", e.Volume, e.IQN, err)
	}
	protect := "0"
	if readOnly {
		protect = "1"
	}
	return write(protect, at, "write_protect")
}

func (k *Kernel) unmapLUN(e Export) error { return unlink(k.mappedAt(e)) }

// serveTarget makes the target and its portals.
func (k *Kernel) serveTarget(f Front, portals []netip.Addr) error {
	k.user, k.secret = f.User, f.Secret
	if err := os.MkdirAll(k.group(), 0o755); err != nil {
		return err
	}
	err := errors.Join(write("1", k.group(), "attrib", "authentication"), write("0", k.group(), "attrib", "generate_node_acls"))
	if err != nil {
		return err
	}
	initiators, err := k.initiators()
	if err != nil {
		return err
	}
	for _, iqn := range initiators {
		if err := k.identify(iqn); err != nil {
			return err
		}
	}
	// A login at a portal of a disabled group is refused for good; one without a listener is tried again.
	if f.Away == Down {
		return errors.Join(k.listen(nil), k.enable("0"))
	}
	return errors.Join(k.enable("1"), k.listen(portals))
}

// enable opens the group, or closes it with all its sessions.
func (k *Kernel) enable(value string) error {
	is, err := os.ReadFile(filepath.Join(k.group(), "enable"))
	if err != nil || strings.TrimSpace(string(is)) == value {
		return err
	}
	return write(value, k.group(), "enable")
}

// listen makes the group listen at addresses, and nowhere else.
func (k *Kernel) listen(at []netip.Addr) error {
	dir := filepath.Join(k.group(), "np")
	is, err := names(dir)
	if err != nil {
		return err
	}
	var wanted []string
	for _, address := range at {
		wanted = append(wanted, netip.AddrPortFrom(address, port).String())
	}
	for _, portal := range is {
		if !slices.Contains(wanted, portal) {
			if err := os.Remove(filepath.Join(dir, portal)); err != nil {
				return err
			}
		}
	}
	for _, portal := range wanted {
		if !slices.Contains(is, portal) {
			if err := os.Mkdir(filepath.Join(dir, portal), 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}
