package arrays

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// traces is what the node shows of a volume.
type traces struct {
	// staging is what is mounted where the volume is staged; there: something is.
	staging attach.Mount
	there   bool
	// foreign: that is something else than the volume.
	foreign bool
	// vanished: that is the volume, whose device is gone.
	vanished bool
	// device is the one that is mounted there, or whose node is.
	device attach.Device
	// elsewhere are the other mounts of the volume: those for pods.
	elsewhere []attach.Mount
	// devices are the volume's.
	devices []attach.Device
}

// trace looks for all that the node has of a volume. It asks the mount table and sysfs only.
func (t *task) trace(ctx context.Context, r staged.Record) (s traces, err error) {
	table, err := t.Table()
	if err != nil {
		return s, because(volume.ErrUncertain, err, "read the mount table")
	}
	at := pools.StagedAt(r.Path, r.Block)
	s.staging, s.there = attach.At(table, at)
	if r.Attachment.Target != "" && r.Serial != "" {
		if s.devices, err = t.devices(ctx, r, table); err != nil {
			return s, err
		}
	}
	if s.there {
		if err := t.judge(ctx, r, &s); err != nil {
			return s, err
		}
	}
	for _, m := range table {
		if m.Target == at || t.copied(m) {
			continue
		}
		if s.there && !s.foreign && within(m, s.staging) || ofExport(m, r) || ofDevices(m, r, s.devices) {
			s.elsewhere = append(s.elsewhere, m)
		}
	}
	return s, nil
}

// copied reports whether a mount is a copy of another one, which goes with it.
func (e *environment) copied(m attach.Mount) bool {
	return e.HostRoot != "" && strings.HasPrefix(m.Target, strings.TrimSuffix(e.HostRoot, "/")+"/")
}

// devices returns the devices of a volume.
func (t *task) devices(ctx context.Context, r staged.Record, table []attach.Mount) (own []attach.Device, err error) {
	all, err := t.Initiator.Devices(ctx, r.Attachment.Target)
	if err != nil {
		return nil, because(volume.ErrUncertain, err, "look for the devices of target %s", r.Attachment.Target)
	}
	for _, d := range all {
		if d.Is(r.Serial) || unidentified(r, d) && !slices.ContainsFunc(table, func(m attach.Mount) bool { return shows(m, d) }) {
			own = append(own, d)
		}
	}
	return own, nil
}

// judge tells what the mount is that is where a volume is staged.
func (t *task) judge(ctx context.Context, r staged.Record, s *traces) (err error) {
	if r.Attachment.Protocol == pools.NFS {
		// The directory is the volume's own. The kernel shows the address at which it knows the server already,
		// where an array has several.
		s.foreign = !isNFS(s.staging) || pathOf(s.staging.Source) != pathOf(r.Attachment.Export)
		return nil
	}
	number := s.staging.Device
	if r.Block {
		number, err = t.Disk.DeviceAt(s.staging.Target)
	}
	if err == nil {
		s.device, err = t.Initiator.DeviceByNumber(ctx, number)
	}
	switch {
	case errors.Is(err, attach.ErrNotOurs):
		s.foreign = true
	case errors.Is(err, volume.ErrNotFound):
		s.vanished = true
	case err != nil:
		return because(volume.ErrUncertain, err, "look for the device at %s", s.staging.Target)
	default:
		s.foreign = r.Serial != "" && !s.device.Is(r.Serial) && (s.device.Target != r.Attachment.Target || !unidentified(r, s.device))
	}
	return nil
}

// within reports whether a mount shows what another one shows, or a part of it. A server may have several exports on
// one file system. The nodes of devices are all on one, and that of a device that is gone is called sda//deleted.
func within(m, of attach.Mount) bool {
	if isNFS(m) && m.Source != of.Source || isNode(m) && m.Root != of.Root {
		return false
	}
	return m.Device == of.Device && (m.Root == of.Root || strings.HasPrefix(m.Root, strings.TrimSuffix(of.Root, "/")+"/"))
}

// isNFS reports whether a mount is of an NFS server.
func isNFS(m attach.Mount) bool { return m.FSType == "nfs" || m.FSType == "nfs4" }

func ofExport(m attach.Mount, r staged.Record) bool {
	return r.Attachment.Protocol == pools.NFS && isNFS(m) && m.Source == r.Attachment.Export
}

// pathOf returns the path of an export, which follows its server. The record of an older daemon may have it with
// slashes that the mount table does not show.
func pathOf(export string) string {
	_, name, _ := strings.Cut(export, ":/")
	return path.Clean("/" + name)
}

// isNode reports whether a mount is the node of a device: these are in memory.
func isNode(m attach.Mount) bool {
	return (m.FSType == "devtmpfs" || m.FSType == "tmpfs") && m.Root != "/"
}

func ofDevices(m attach.Mount, r staged.Record, devices []attach.Device) bool {
	return slices.ContainsFunc(devices, func(d attach.Device) bool { return shows(m, d) && r.Block == isNode(m) })
}

// shows reports whether a mount is of a device's file system, or of its node.
func shows(m attach.Mount, d attach.Device) bool {
	if isNode(m) {
		return m.Root == "/"+d.Name
	}
	return m.Device == d.Number
}

// server is what the calls for a volume wait for, in words.
func server(r staged.Record) string {
	if r.Attachment.Protocol == pools.NFS {
		host, _, _ := strings.Cut(r.Attachment.Export, ":/")
		return "NFS server " + host
	}
	return "the array at " + r.Attachment.Portal + " (target " + r.Attachment.Target + ")"
}

// staging returns the mount of a device where it is staged, for one where a pod has it.
func (t *task) staging(table []attach.Mount, of attach.Mount) (attach.Mount, bool) {
	for _, m := range table {
		if isNode(m) && within(m, of) && m.Target != of.Target && filepath.Base(m.Target) == pools.DeviceFile && !t.copied(m) {
			return m, true
		}
	}
	return attach.Mount{}, false
}

// find returns the record of the volume. Without one it says what can be seen of it at a path: an older daemon
// may have staged it. known is false where nothing is mounted there.
func (t *task) find(ctx context.Context, path string) (r staged.Record, recorded, known bool, err error) {
	r, recorded, err = t.load()
	if err != nil || recorded {
		return r, recorded, recorded, err
	}
	table, err := t.Table()
	if err != nil {
		return r, false, false, because(volume.ErrUncertain, err, "read the mount table")
	}
	r = staged.Record{Volume: t.volume, Path: path, Attachment: pools.Attachment{Volume: t.volume, Node: t.NodeName}}
	m, ok := attach.At(table, pools.StagedAt(path, false))
	if !ok {
		m, ok = attach.At(table, pools.StagedAt(path, true))
		r.Block = ok
	}
	switch {
	case !ok:
		return r, false, false, nil
	case isNode(m) && !r.Block: // a pod has the device there
		if m, ok = t.staging(table, m); !ok {
			return r, false, false, nil
		}
		r.Path, r.Block = filepath.Dir(m.Target), true
	case isNFS(m):
		r.Attachment.Protocol, r.Attachment.Export = pools.NFS, m.Source
		return r, false, true, nil
	}
	number := m.Device
	if r.Block {
		number, err = t.Disk.DeviceAt(m.Target)
	} else {
		r.FSType = m.FSType
	}
	r.Attachment.Protocol = pools.ISCSI
	var d attach.Device
	if err == nil {
		d, err = t.Initiator.DeviceByNumber(ctx, number)
	}
	switch {
	case errors.Is(err, volume.ErrNotFound): // it has vanished
	case errors.Is(err, attach.ErrNotOurs):
		return r, false, true, t.noVolume(m)
	case err != nil:
		return r, false, true, because(volume.ErrUncertain, err, "look for the device at %s", m.Target)
	}
	r.Serial, r.Attachment.Target, r.Attachment.LUN = cmp.Or(d.Serial, d.WWID), d.Target, d.LUN
	r.Attachment.Serial = r.Serial
	return r, false, true, nil
}
