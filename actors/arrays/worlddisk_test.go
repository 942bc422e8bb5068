package arrays

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

var errNotFound = volume.ErrNotFound

// nodes is the number of devtmpfs.
const nodes = 6

// Table reads the mount table.
func (d *daemon) Table() ([]attach.Mount, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readings++
	return slices.Concat(d.mounts, d.copies), nil
}

// Look looks at a path.
func (d *daemon) Look(path string) (p attach.Point, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.at(path)
	if !ok {
		return p, nil
	}
	p = attach.Point{Mounted: true, Directory: !isNode(m), Device: m.Device, Gone: strings.HasSuffix(m.Root, "//deleted")}
	for _, dev := range d.devices {
		if isNode(m) && m.Root == "/"+dev.Name {
			p.Node = dev.Number
		}
	}
	return p, nil
}

// MountNFS mounts an export, once its server answers.
func (d *daemon) MountNFS(export, target string, _ []string, readOnly bool) error {
	server, _, _ := strings.Cut(export, ":/")
	if err := d.waits(server); err != nil {
		return err
	}
	return d.change("mount nfs", func() error {
		if _, ok := d.at(target); ok {
			d.forbid("mount %s over what is at %s", export, target)
		}
		source := export
		if name := d.shownAs[server]; name != "" {
			source = name + strings.TrimPrefix(export, server)
		}
		d.mounts = append(d.mounts, attach.Mount{
			Target: target, Root: "/", FSType: "nfs4", Source: source, Device: uint64(crc32.ChecksumIEEE([]byte(export))), ReadOnly: readOnly,
		})
		return nil
	})
}

// of returns the LUN behind the path of a device. The caller holds the lock.
func (w *world) of(path string) (*attach.Device, *lun, error) {
	for _, dev := range w.devices {
		if dev.Path == path {
			return dev, w.luns[dev.Target][dev.LUN], nil
		}
	}
	return nil, nil, fmt.Errorf("%w: %s", errNotFound, path)
}

// disk makes a change of a device, once its array answers.
func (d *daemon) disk(call, path string, change func(*attach.Device, *lun) error) error {
	d.mu.Lock()
	dev, _, err := d.of(path)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if err := d.waits(dev.Target); err != nil {
		return err
	}
	return d.change(call, func() error {
		dev, lun, err := d.of(path)
		if err == nil && lun == nil {
			err = fmt.Errorf("i/o error: %s", path)
		}
		if err != nil {
			return err
		}
		return change(dev, lun)
	})
}

func (d *daemon) Content(_ context.Context, path string) (content string, err error) {
	err = d.disk("content", path, func(_ *attach.Device, lun *lun) error {
		if lun.content == "partial" || lun.content == "data" {
			return fmt.Errorf("%w: it has data", attach.ErrNotOurs)
		}
		content = lun.content
		return nil
	})
	return content, err
}

func (d *daemon) Format(_ context.Context, path, fsType string) error {
	return d.mkfs("format", path, fsType, func(lun *lun) bool { return lun.content == "" })
}

func (d *daemon) Reformat(_ context.Context, path, fsType string) error {
	return d.mkfs("reformat", path, fsType, func(lun *lun) bool { return lun.content == "" || lun.content == "partial" })
}

// mkfs makes a file system in two steps: a crash leaves half of one.
func (d *daemon) mkfs(call, path, fsType string, may func(*lun) bool) error {
	done := false
	err := d.disk(call, path, func(dev *attach.Device, lun *lun) error {
		switch {
		case d.inUse(dev) != "":
			d.forbid("mkfs on %s, which is in use", dev.Name)
		case lun.content == fsType && call == "reformat":
			done = true // it is whole, and is kept
			return nil
		case !may(lun):
			d.forbid("%s on %s, which has %q", call, dev.Name, lun.content)
			return attach.ErrNotOurs
		}
		lun.content = "partial"
		lun.formats++
		return nil
	})
	if err != nil || done {
		return err
	}
	return d.disk(call+" ends", path, func(_ *attach.Device, lun *lun) error { lun.content = fsType; return nil })
}

func (d *daemon) Check(_ context.Context, path, fsType string) error {
	return d.disk("check", path, func(dev *attach.Device, lun *lun) error {
		if use := d.inUse(dev); use != "" {
			d.forbid("check of %s, which is mounted at %s", dev.Name, use)
		}
		if lun.content != fsType {
			d.forbid("check of %s for %s, which has %q", dev.Name, fsType, lun.content)
		}
		return nil
	})
}

func (d *daemon) Mount(path, target, fsType string, _ []string, readOnly bool) error {
	return d.disk("mount", path, func(dev *attach.Device, lun *lun) error {
		if lun.content != fsType {
			return fmt.Errorf("%s has no %s", path, fsType)
		}
		if _, ok := d.at(target); ok {
			d.forbid("mount %s over what is at %s", path, target)
		}
		d.mounts = append(d.mounts, attach.Mount{Target: target, Root: "/", FSType: fsType, Source: path, Device: dev.Number, ReadOnly: readOnly})
		return nil
	})
}

func (d *daemon) Grow(path string) (size int64, err error) {
	d.mu.Lock()
	m, ok := d.at(path)
	d.mu.Unlock()
	if !ok {
		return 0, errNotFound
	}
	err = d.disk("grow", m.Source, func(_ *attach.Device, lun *lun) error {
		lun.grown, size = lun.size, lun.size
		return nil
	})
	return size, err
}

func (d *daemon) BindDevice(path, file string) error {
	return d.change("bind device", func() error {
		dev, _, err := d.of(path)
		if err != nil {
			return err
		}
		if _, ok := d.at(file); ok {
			d.forbid("bind %s over what is at %s", path, file)
		}
		d.paths[file] = true
		d.mounts = append(d.mounts, attach.Mount{Target: file, Root: "/" + dev.Name, FSType: "devtmpfs", Source: "devtmpfs", Device: nodes})
		return nil
	})
}

func (d *daemon) DeviceAt(file string) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.at(file)
	if !ok || strings.HasSuffix(m.Root, "//deleted") {
		return 0, errNotFound
	}
	for _, dev := range d.devices {
		if isNode(m) && m.Root == "/"+dev.Name {
			return dev.Number, nil
		}
	}
	return 0, attach.ErrNotOurs
}

func (d *daemon) Bind(source, target string, _ []string, readOnly bool) error {
	d.mu.Lock()
	from, ok := d.at(source)
	d.mu.Unlock()
	if isNFS(from) {
		server, _, _ := strings.Cut(from.Source, ":/")
		if err := d.waits(server); err != nil {
			return err
		}
	}
	return d.change("bind", func() error {
		if from, ok = d.at(source); !ok {
			return errNotFound
		}
		if m, ok := d.at(target); ok {
			switch {
			case m.Device != from.Device || m.Root != from.Root:
				return fmt.Errorf("%w: %w", attach.ErrNotOurs, volume.ErrForeignMount)
			case m.ReadOnly != (readOnly || from.ReadOnly):
				return volume.ErrConflict
			}
			return nil
		}
		d.paths[target] = true
		from.Target, from.ReadOnly = target, from.ReadOnly || readOnly
		d.mounts = append(d.mounts, from)
		return nil
	})
}

func (d *daemon) Unmount(target string) error {
	d.mu.Lock()
	m, ok := d.at(target)
	server, _, _ := strings.Cut(m.Source, ":/")
	if !isNFS(m) {
		if dev, _, err := d.of(m.Source); err == nil {
			server = dev.Target
		}
	}
	d.mu.Unlock()
	if !ok {
		return nil
	}
	if err := d.waits(server); err != nil {
		return err
	}
	return d.change("unmount", func() error {
		if strings.HasPrefix(target, "/staging/") {
			for _, other := range d.mounts {
				if strings.HasPrefix(other.Target, "/pods/") && other.Device == m.Device && other.Root == m.Root {
					d.forbid("unmount of %s, which is published at %s", target, other.Target)
				}
			}
		}
		d.mounts = slices.DeleteFunc(d.mounts, func(m attach.Mount) bool { return m.Target == target })
		return nil
	})
}

func (d *daemon) MakeDir(path string) error {
	return d.change("mkdir", func() error { d.paths[path] = true; return nil })
}

func (d *daemon) Remove(path string) error {
	return d.change("remove", func() error {
		if _, ok := d.at(path); ok {
			d.forbid("remove of %s, where something is mounted", path)
		}
		delete(d.paths, path)
		return nil
	})
}

func (d *daemon) Stats(path string) (s volume.Stats, err error) {
	d.mu.Lock()
	m, ok := d.at(path)
	d.mu.Unlock()
	if !ok {
		return s, errNotFound
	}
	if isNFS(m) {
		server, _, _ := strings.Cut(m.Source, ":/")
		if err := d.waits(server); err != nil {
			return s, err
		}
	}
	return volume.Stats{Space: volume.Space{Total: volume.Size{Bytes: 100}}}, nil
}
