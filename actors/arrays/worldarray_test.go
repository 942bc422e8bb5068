package arrays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/iscsi"
	"github.com/katbox/katbox/internal/node/kubeapi"
)

// longestTry is what a login takes at an address that does not answer.
const longestTry = 15 * time.Second

func (d *daemon) Login(ctx context.Context, portal iscsi.Portal, chap iscsi.CHAP) error {
	d.mu.Lock()
	d.logins++
	answers := d.portals[portal.Target] == portal.Address && !d.away[portal.Target]
	d.mu.Unlock()
	if !answers {
		limited, cancel := context.WithTimeout(ctx, longestTry)
		defer cancel()
		<-limited.Done()
		return fmt.Errorf("%w: no answer from %s", volume.ErrUnavailable, portal.Address)
	}
	return d.change("login", func() error {
		if chap.Secret != d.secret {
			return iscsi.ErrAuth
		}
		d.hosts++
		d.kept[portal.Target] = true
		d.sessions[portal.Target] = &sessionState{up: true, host: d.hosts, address: portal.Address}
		return nil
	})
}

func (d *daemon) Session(_ context.Context, target string) (iscsi.Session, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[target]
	if !ok {
		return iscsi.Session{}, false, nil
	}
	return iscsi.Session{Target: target, Address: s.address, Host: s.host, LoggedIn: s.up, Since: s.since}, true, nil
}

func (d *daemon) Scan(_ context.Context, target string, number int, w iscsi.Wanted) (dev attach.Device, err error) {
	err = d.change("scan", func() error {
		if now := d.sessions[target]; now == nil || !now.up {
			return fmt.Errorf("%w: the session is down", volume.ErrUnavailable)
		}
		there := d.luns[target][number]
		switch {
		case there == nil:
			return errNotFound
		case !w.MayBe(there.identity()):
			return fmt.Errorf("%w: it is %s", attach.ErrNotOurs, there.serial)
		}
		known := there.identity().Proves(w.ID) || there.wwid == w.WWID
		for _, before := range d.devices {
			if before.Target == target && before.LUN == number {
				if known && before.Identity == there.identity() {
					dev = *before
					return nil
				}
				if d.inUse(before) != "" {
					return fmt.Errorf("%w: still in use", attach.ErrNotOurs)
				}
				d.removeDevice(before)
				break
			}
		}
		d.numbers++
		name := fmt.Sprintf("sd%d", d.numbers)
		host := d.sessions[target].host
		dev = attach.Device{
			Name: name, Path: "/dev/" + name, Number: 1000 + d.numbers, Host: host, Target: target, LUN: number, Identity: there.identity(),
		}
		kept := dev
		d.devices = append(d.devices, &kept)
		return nil
	})
	return dev, err
}

func (d *daemon) Devices(_ context.Context, target string) (all []attach.Device, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		if dev.Target == target {
			all = append(all, *dev)
		}
	}
	return all, nil
}

func (d *daemon) DeviceByNumber(_ context.Context, number uint64) (attach.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		if dev.Number == number {
			return *dev, nil
		}
	}
	if number < 1000 {
		return attach.Device{}, attach.ErrNotOurs // a disk of the node
	}
	return attach.Device{}, errNotFound
}

func (d *daemon) Rescan(_ context.Context, dev attach.Device) (size int64, err error) {
	err = d.disk("rescan", dev.Path, func(_ *attach.Device, lun *lun) error { size = lun.size; return nil })
	return size, err
}

func (d *daemon) Delete(_ context.Context, dev attach.Device) error {
	return d.change("delete", func() error {
		there, _, err := d.of(dev.Path)
		if err != nil {
			return nil
		}
		if use := d.inUse(there); use != "" {
			d.forbid("delete of %s, which is mounted at %s", dev.Name, use)
			return volume.ErrBusy
		}
		d.removeDevice(there)
		return nil
	})
}

// inUse is where a device is mounted. The caller holds the lock.
func (w *world) inUse(dev *attach.Device) string {
	for _, m := range w.mounts {
		if !isNode(m) && m.Device == dev.Number || isNode(m) && m.Root == "/"+dev.Name {
			return m.Target
		}
	}
	return ""
}

func (d *daemon) Logout(_ context.Context, target string) error {
	return d.change("logout", func() error {
		for _, dev := range d.devices {
			if dev.Target == target {
				d.forbid("logout of %s, which has %s", target, dev.Name)
				return volume.ErrBusy
			}
		}
		delete(d.sessions, target)
		return nil
	})
}

func (d *daemon) Forget(_ context.Context, target string) error {
	return d.change("forget", func() error {
		if d.sessions[target] != nil {
			return fmt.Errorf("%w: there is a session", volume.ErrBusy)
		}
		delete(d.kept, target)
		return nil
	})
}

// cluster is the API server.
type cluster struct{ *daemon }

var errAPI = errors.New("the API server does not answer")

func (c cluster) CHAP(context.Context, string) (user, secret string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaps++
	if c.apiDown {
		return "", "", errAPI
	}
	return "user", c.secret, nil
}

func (c cluster) ReportSession(_ context.Context, attachment string, active bool) error {
	return c.change("report", func() error {
		if c.apiDown {
			return errAPI
		}
		c.reports[attachment] = active
		c.reported++
		return nil
	})
}

func (c cluster) Attached(_ context.Context, attachment string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.apiDown {
		return false, errAPI
	}
	return !c.detached[attachment], nil
}

func (c cluster) Where(_ context.Context, attachment string) (kubeapi.Where, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiDown {
		return kubeapi.Where{}, errAPI
	}
	id, _, _ := strings.Cut(attachment, ".")
	a := staging(id).Attachment
	if a.Protocol == pools.NFS {
		return kubeapi.Where{Export: cmp.Or(c.exports[id], a.Export)}, nil
	}
	number, moved := c.lunNumbers[id]
	if !moved {
		number = a.LUN
	}
	return kubeapi.Where{Target: targetOf(attachment), Address: c.portals[targetOf(attachment)], LUN: number}, nil
}

// ConfirmDisk is what the controller says: the disk of a volume is the one that was found first.
func (c cluster) ConfirmDisk(_ context.Context, attachment string, disk kubeapi.Disk) error {
	return c.change("confirm", func() error {
		switch known := c.disks[attachment]; {
		case c.apiDown:
			return errAPI
		case known == "" || known == disk.WWID:
			c.disks[attachment] = disk.WWID
			c.confirmed++
			c.diskBytes = disk.Bytes
			return nil
		default:
			return fmt.Errorf("%w: its disk is %s", kubeapi.ErrOtherDisk, known)
		}
	})
}
