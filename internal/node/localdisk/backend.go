package localdisk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
)

const btrfsName = "btrfs"

// detect returns the backend of a new pool. An error that is a [volume.ErrInvalid] says why the one that is wanted
// does not go with the disk.
func (p *Pool) detect() (local.Backend, error) {
	switch p.Backend {
	case local.Auto:
		if p.location.FSType == btrfsName && simpleQuotas(p.here) == nil {
			return local.Btrfs, nil
		}
		if state, _ := quota.Detect(int(p.here.Fd())).State(); state == quota.Enforced {
			return local.ProjectQuota, nil
		}
		return local.Image, p.canImages()
	case local.Btrfs:
		if p.location.FSType != btrfsName {
			return "", volume.Invalid("backend", "is btrfs, and the disk has "+p.location.FSType)
		}
		return local.Btrfs, simpleQuotas(p.here)
	case local.ProjectQuota:
		if err := p.enforced(); err != nil {
			return "", volume.Invalid("backend", "is projectQuota, and "+err.Error())
		}
		return local.ProjectQuota, nil
	case local.Image:
		return local.Image, p.canImages()
	}
	return "", volume.Invalid("backend", fmt.Sprintf("is %.40q, which is none of %s, %s, %s and %s", p.Backend,
		local.Auto, local.ProjectQuota, local.Image, local.Btrfs))
}

// enforced returns why the disk enforces no project quotas; nil if it does.
func (p *Pool) enforced() error {
	switch state, reason := quota.Detect(int(p.here.Fd())).State(); {
	case reason != nil:
		return reason
	case state != quota.Enforced:
		return errors.New("the file system counts what projects use, and enforces no limit; mount it with prjquota")
	}
	return nil
}

// canImages returns nil if the disk can set blocks aside.
func (p *Pool) canImages() error {
	file, remove, err := p.trial()
	if err != nil {
		return err
	}
	err = kernel.Fallocate(int(file.Fd()), 0, 0, loopBlock)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = volume.Invalid("backend", "is image, and "+p.location.FSType+" cannot set blocks aside for a file")
	}
	return errors.Join(p.wantsRoom(err), remove())
}

// canShare reports whether files on the disk can share blocks.
func (p *Pool) canShare() (bool, error) {
	from, removeFrom, err := p.trial()
	if err != nil {
		return false, err
	}
	to, removeTo, err := p.trial()
	if err != nil {
		return false, errors.Join(err, removeFrom())
	}
	err = kernel.Clone(int(to.Fd()), int(from.Fd()))
	can := err == nil
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = nil
	}
	return can, errors.Join(err, removeFrom(), removeTo())
}

// canAttach returns why no image can have a loop device.
func (p *Pool) canAttach() error {
	file, remove, err := p.trial()
	switch {
	case volume.IsNoSpace(err):
		return nil // the next image tells
	case err != nil:
		return err
	}
	if err := kernel.Truncate(file, loopBlock); err != nil {
		return errors.Join(err, remove())
	}
	l, err := attachLoop(file, kernel.LoopAutoclear)
	if err == nil {
		err = l.Close()
	}
	return errors.Join(err, remove())
}

// hasCopies reports whether there are snapshots, or volumes that were made of others. That records cannot be read counts as yes.
func (p *Pool) hasCopies() bool {
	all, err := p.all()
	return err != nil || slices.ContainsFunc(all, func(k kept) bool { return k.IsSnapshot() || k.Source != local.Source{} })
}

// trial makes an empty file in the pool's directory, which remove removes.
func (p *Pool) trial() (file *os.File, remove func() error, err error) {
	name := newPrefix + rand.Text()
	file, err = kernel.Create(fmt.Sprintf("/proc/self/fd/%d/%s", p.here.Fd(), name), os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, p.wantsRoom(err)
	}
	return file, func() error { return errors.Join(file.Close(), kernel.Unlinkat(int(p.here.Fd()), name)) }, nil
}

// chooseBackend makes the backend that pool.json names.
func (p *Pool) chooseBackend() (err error) {
	space, err := p.dir.Space()
	if err != nil {
		return err
	}
	p.found = local.Pool{UUID: p.identity.UUID, Key: p.identity.Key, Class: p.Class, Path: p.path, Backend: p.identity.Backend,
		FSType: p.location.FSType, Total: space.Total.Bytes, Free: space.Free.Bytes}
	switch p.identity.Backend {
	case local.Image:
		p.backend = &images{Pool: p, copyOnWrite: p.location.FSType == btrfsName, sharing: usualSharing}
		p.found.HardLimit, p.found.Block = true, true
		if err := p.canAttach(); err != nil {
			p.found.Failed = volume.OneLine(err)
		}
		p.found.Copies, err = p.canShare()
		if p.location.FSType == btrfsName {
			// A pool of an earlier version that has copies goes on with them, and promises less.
			p.found.Copies = p.found.Copies && p.hasCopies()
			p.found.HardLimit = !p.found.Copies
		}
		if volume.IsNoSpace(err) {
			// A full disk is no reason to keep its volumes away.
			p.Log.Info("the disk is too full to tell whether it can share blocks; no copies until it is opened again", "path", p.path)
			err = nil
		}
		return err
	case local.ProjectQuota:
		p.backend = directories{p}
		if err := p.enforced(); err != nil {
			p.found.Failed = err.Error()
		}
		p.ids, err = p.Projects.on(p.location.Device, p.here, func(fd int) quota.Kernel { return quota.Detect(fd) })
		return err
	case local.Btrfs:
		p.backend = subvolumes{p}
		// No hard limit: any process may make a subvolume in the volume that is in no quota group.
		p.found.Copies = true
		switch {
		case p.location.FSType != btrfsName:
			return fmt.Errorf("%w: it keeps its volumes in subvolumes of btrfs, and is on %s", volume.ErrConflict, p.location.FSType)
		default:
			if err := simpleQuotas(p.here); err != nil {
				p.found.Failed = err.Error()
			}
		}
		p.ids, err = p.Projects.on(p.location.Device, p.here, func(fd int) quota.Kernel { return quotaGroups{fd} })
		return err
	}
	return fmt.Errorf("%s names the backend %.40q, which this version does not know", poolFile, p.identity.Backend)
}
