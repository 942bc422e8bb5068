package iscsi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/attach"
	"github.com/katbox/katbox/internal/volume"
)

// found is a disk and its directory in sysfs, which is named by its SCSI address.
type found struct {
	attach.Device
	dir string
}

// Devices returns the disks of all our sessions to a target. It asks the kernel alone: a Serial is
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
	if _, err := filepath.EvalSymlinks(filepath.Join(i.sysfs, "dev", "block", name)); gone(err) {
		return attach.Device{}, fmt.Errorf("block device %s: %w", name, volume.ErrNotFound)
	} else if err != nil {
		return attach.Device{}, fmt.Errorf("block device %s: %w", name, err)
	}
	sessions, err := i.Sessions(ctx)
	for _, s := range sessions {
		disks, diskErr := i.disks(s)
		err = errors.Join(err, diskErr)
		for _, d := range disks {
			if d.Number == number {
				return d.Device, nil
			}
		}
	}
	if err != nil {
		return attach.Device{}, err
	}
	return attach.Device{}, fmt.Errorf("block device %s is no disk of our iSCSI sessions: %w", name, attach.ErrNotOurs)
}

// disks returns what LUNs of a session are disks.
func (i *Initiator) disks(s Session) (disks []found, err error) {
	dir := i.class("iscsi_session", "session"+strconv.Itoa(s.ID), "device")
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
			d, diskErr := i.disk(s, filepath.Join(dir, target, name))
			switch {
			case gone(diskErr):
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
	a, err := parseAddress(filepath.Base(dir))
	if err != nil {
		return d, err
	}
	if a.host != s.Host {
		return d, fmt.Errorf("sysfs: %s is not of host%d", filepath.Base(dir), s.Host)
	}
	d.LUN = a.lun
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
	page, err := contents(filepath.Join(dir, "vpd_pg80"))
	if gone(err) || errors.Is(err, unix.EINVAL) { // the array had none
		return d, nil
	}
	if err == nil {
		d.Serial, err = parseSerial(page)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", d.Name, err)
	}
	return d, nil
}

// at returns the disk at a LUN of a session, and whether there is one.
func (i *Initiator) at(s Session, lun int) (found, bool, error) {
	disks, err := i.disks(s)
	for _, d := range disks {
		if d.LUN == lun {
			return d, true, nil
		}
	}
	return found{}, false, err
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
