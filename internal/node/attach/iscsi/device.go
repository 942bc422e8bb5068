package iscsi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// found is a disk and its directory in sysfs, which is named by its SCSI address.
type found struct {
	attach.Device
	dir string
}

// Devices returns the disks of all our sessions to a target. It asks the kernel alone: an Identity is
// what the array said when the disk appeared, and empty where the kernel has none.
func (i *Initiator) Devices(ctx context.Context, target string) ([]attach.Device, error) {
	sessions, err := i.to(ctx, target)
	var devices []attach.Device
	for _, s := range sessions {
		disks, diskErr := i.disks(s)
		err = errors.Join(err, diskErr)
		for _, d := range disks {
			devices = append(devices, d.Device)
		}
	}
	return devices, err
}

// DeviceByNumber returns the disk of one of our sessions that has a number: volume.ErrNotFound
// where no device has it, attach.ErrNotOurs where another device has. It asks the kernel alone.
func (i *Initiator) DeviceByNumber(ctx context.Context, number uint64) (attach.Device, error) {
	name := fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number))
	if err := context.Cause(ctx); err != nil {
		return attach.Device{}, fmt.Errorf("block device %s: %w", name, err)
	}
	d, err := i.byNumber(name, number)
	switch {
	case gone(err):
		return attach.Device{}, fmt.Errorf("block device %s: %w", name, volume.ErrNotFound)
	case errors.Is(err, errStranger):
		return attach.Device{}, fmt.Errorf("block device %s is no disk of our iSCSI sessions: %w", name, attach.ErrNotOurs)
	case err != nil:
		return attach.Device{}, fmt.Errorf("block device %s: %w", name, err)
	}
	return d, nil
}

// byNumber follows the kernel's link from a block device to its session and its LUN:
// .../host2/session1/target2:0:0/2:0:0:5/block/sda. [errStranger] is one of other things.
func (i *Initiator) byNumber(name string, number uint64) (attach.Device, error) {
	link := filepath.Join(i.sysfs, "dev", "block", name)
	path, err := kernel.Readlink(link)
	if err != nil {
		return attach.Device{}, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(link), path)
	}
	block := filepath.Dir(path)
	lun := filepath.Dir(block)
	session := filepath.Dir(filepath.Dir(lun))
	if filepath.Base(block) != "block" || !strings.HasPrefix(filepath.Base(session), "session") {
		return attach.Device{}, errStranger
	}
	s, err := i.session(filepath.Base(session))
	if err != nil {
		return attach.Device{}, err
	}
	disk := filepath.Base(path)
	d := attach.Device{Name: disk, Path: filepath.Join(i.dev, disk), Number: number, Host: s.Host, Target: s.Target}
	if d.LUN, err = lunOf(s, lun); err != nil {
		return attach.Device{}, err
	}
	if d.Identity, err = identityOf(lun); err == nil && d.Identity == (attach.Identity{}) {
		// It has no name, or is gone by now.
		again, err := i.disk(s, lun)
		return again.Device, err
	}
	return d, err
}

// lunOf returns the LUN whose directory of a session is dir.
func lunOf(s Session, dir string) (int, error) {
	a, err := parseAddress(filepath.Base(dir))
	if err == nil && a.host != s.Host {
		err = fmt.Errorf("sysfs: %s is not of host%d", filepath.Base(dir), s.Host)
	}
	if a.lun>>14 == flatFormat {
		a.lun &= 1<<14 - 1
	}
	return a.lun, err
}

// flatFormat are the two highest bits of a LUN in the flat format of SCSI (SAM), which has 14 bits for the number.
const flatFormat = 1

// encodings are the numbers by which the kernel may know a LUN. Above 255 SCSI wants the flat format, but some arrays, LIO
// among them, take the number as it is and nothing else. To an array that looks at the lower 8 bits alone that would
// be another LUN, so it comes last.
func encodings(lun int) []int {
	const simple = 256
	if lun < simple {
		return []int{lun}
	}
	return []int{flatFormat<<14 | lun, lun}
}

// disks returns what LUNs of a session are disks.
func (i *Initiator) disks(s Session) ([]found, error) {
	return i.disksOf(s, func(string) (bool, error) { return true, nil })
}

// disksWith returns the disks of a session that are wanted for what they say of themselves.
func (i *Initiator) disksWith(s Session, wanted func(attach.Identity) bool) ([]found, error) {
	return i.disksOf(s, func(dir string) (bool, error) {
		is, err := identityOf(dir)
		return wanted(is), err
	})
}

// directory is where sysfs has the targets of a session.
func (i *Initiator) directory(s Session) string {
	return i.class("iscsi_session", "session"+strconv.Itoa(s.ID), "device")
}

// disksOf returns the disks of a session whose directories are wanted.
func (i *Initiator) disksOf(s Session, wanted func(dir string) (bool, error)) (disks []found, err error) {
	dir := i.directory(s)
	targets, err := entries(dir)
	for _, target := range targets {
		if !strings.HasPrefix(target, "target") {
			continue
		}
		names, nameErr := entries(filepath.Join(dir, target))
		err = errors.Join(err, nameErr)
		for _, name := range names {
			if !strings.Contains(name, ":") {
				continue
			}
			at := filepath.Join(dir, target, name)
			want, diskErr := wanted(at)
			var d found
			if want {
				d, diskErr = i.disk(s, at)
			}
			switch {
			case gone(diskErr), diskErr == nil && !want:
			case diskErr != nil:
				err = errors.Join(err, diskErr)
			default:
				disks = append(disks, d)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("disks of iSCSI session %d to %s: %w", s.ID, s.Target, err)
	}
	return disks, err
}

// disk reads a SCSI device. One that is no disk, or not one yet, does not exist.
func (i *Initiator) disk(s Session, dir string) (found, error) {
	d := found{dir: dir, Device: attach.Device{Host: s.Host, Target: s.Target}}
	var err error
	if d.LUN, err = lunOf(s, dir); err != nil {
		return d, err
	}
	blocks, err := entries(filepath.Join(dir, "block"))
	if err != nil {
		return d, err
	}
	if len(blocks) == 0 {
		return d, unix.ENXIO
	}
	d.Name, d.Path = blocks[0], filepath.Join(i.dev, blocks[0])
	number, err := attribute(dir, "block", d.Name, "dev")
	if err != nil {
		return d, err
	}
	if d.Number, err = parseNumber(number); err != nil {
		return d, err
	}
	if d.Identity, err = identityOf(dir); err != nil {
		return d, fmt.Errorf("%s: %w", d.Name, err)
	}
	return d, nil
}

// lunDir is where sysfs has a LUN of a session. Of an iSCSI session channel and target are 0.
func (i *Initiator) lunDir(s Session, encoded int) string {
	target := fmt.Sprintf("%d:0:0", s.Host)
	return filepath.Join(i.directory(s), "target"+target, target+":"+strconv.Itoa(encoded))
}

// at returns the disk at a LUN of a session, and whether there is one.
func (i *Initiator) at(s Session, lun int) (found, bool, error) {
	for _, encoded := range encodings(lun) {
		d, err := i.disk(s, i.lunDir(s, encoded))
		switch {
		case gone(err):
		case err != nil:
			return found{}, false, fmt.Errorf("LUN %d of iSCSI session %d to %s: %w", lun, s.ID, s.Target, err)
		default:
			return d, true, nil
		}
	}
	return found{}, false, nil
}

// lookUp returns the disk that a caller knows as device, and the session that it is of, and whether
// it is still there. A later disk may have its name and number: then it is gone.
func (i *Initiator) lookUp(ctx context.Context, device attach.Device) (found, Session, bool, error) {
	sessions, err := i.to(ctx, device.Target)
	if err != nil {
		return found{}, Session{}, false, err
	}
	for _, s := range sessions {
		if s.Host != device.Host {
			continue
		}
		d, ok, err := i.at(s, device.LUN)
		if ok && (d.Name != device.Name || d.Number != device.Number) {
			ok = false
		}
		return d, s, ok, err
	}
	return found{}, Session{}, false, nil
}
