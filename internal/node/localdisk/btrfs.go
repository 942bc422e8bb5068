package localdisk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/quota"
)

// subvolumes keeps each volume in a subvolume of btrfs, which counts in a quota group of its own: of level 1, with the
// number of a project.
type subvolumes struct{ *Pool }

// firstLevel makes the ID of a quota group of a number.
const firstLevel = 1 << 48

func groupOf(project uint32) uint64 { return firstLevel | uint64(project) }

// subvolumeMode lets any user of a pod write, as in an inline volume.
const subvolumeMode = 0o777

func (s subvolumes) create(_ context.Context, r local.Record, project uint32) error {
	if err := s.limit(r, project); err != nil {
		return err
	}
	_, part := s.part(r)
	if err := kernel.MakeSubvolume(int(part.Fd()), r.Name, groupOf(project)); err != nil {
		return fmt.Errorf("make a subvolume: %w", err)
	}
	dir, err := s.openData(r)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := kernel.Fchmod(int(dir.Fd()), subvolumeMode); err != nil {
		return err
	}
	return kernel.Syncfs(int(dir.Fd()))
}

// limit makes the quota group of a volume.
func (s subvolumes) limit(r local.Record, project uint32) error {
	if project == 0 {
		return errNoProject
	}
	if err := kernel.MakeQuotaGroup(int(s.here.Fd()), groupOf(project)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make quota group 1/%d: %w", project, err)
	}
	return s.ids.Kernel.SetLimit(project, s.limitOf(r))
}

func (s subvolumes) clone(_ context.Context, r, from local.Record, project uint32) error {
	var group uint64
	if !r.IsSnapshot() {
		if err := s.limit(r, project); err != nil {
			return err
		}
		group = groupOf(project)
	}
	origin, err := s.openData(from)
	if err != nil {
		return err
	}
	defer origin.Close()
	if err := whole(r, from, origin); err != nil {
		return err
	}
	_, part := s.part(r)
	if err := kernel.SnapshotSubvolume(int(part.Fd()), r.Name, int(origin.Fd()), r.IsSnapshot(), group); err != nil {
		return fmt.Errorf("take a snapshot of %s: %w", from.Name, err)
	}
	// A pod may have made one meanwhile.
	if err := whole(r, from, origin); err != nil {
		return err
	}
	return kernel.Syncfs(int(part.Fd()))
}

// whole refuses an origin that a pod has made a subvolume in, which takes no privileges: the kernel's snapshot has an
// empty directory there. To take snapshots of those as well would make a copy of several moments.
func whole(r, from local.Record, origin *os.File) error {
	nested, err := kernel.NestedSubvolume(int(origin.Fd()))
	if err != nil || nested == "" {
		return wrap(err, "look for subvolumes in %s", from.Name)
	}
	field := "volume_content_source"
	if r.IsSnapshot() {
		field = "source_volume_id"
	}
	return volume.Invalid(field, fmt.Sprintf("is %s, in which a pod has made the btrfs subvolume %.200q: the copy would lack all that is in "+
		"there; make it a directory, or delete it (btrfs subvolume delete)", from.Name, nested))
}

func (s subvolumes) grow(r local.Record, project uint32) error {
	if project != 0 && !s.hasProject(r, project) {
		return nil // nothing limits it
	}
	return directories(s).grow(r, project)
}

// free makes a snapshot writable: the kernel moves no directory that cannot be written to.
func (s subvolumes) free(r local.Record) error {
	if !r.IsSnapshot() {
		return nil
	}
	dir, err := s.openData(r)
	if err != nil {
		return err
	}
	defer dir.Close()
	flags, err := kernel.GetSubvolumeFlags(int(dir.Fd()))
	if err == nil && flags&kernel.SubvolumeReadOnly != 0 {
		err = kernel.SetSubvolumeFlags(int(dir.Fd()), flags&^kernel.SubvolumeReadOnly)
	}
	return wrap(err, "make the snapshot writable")
}

func (s subvolumes) stage(_ context.Context, r local.Record, path string, options []string, readOnly bool) error {
	if project := s.projectOf(r.Name); s.hasProject(r, project) {
		s.held(r, project)
	} else {
		s.Log.Info("a volume is a directory and no subvolume, as in a copy or after a restore: nothing limits it; copy its files into a new one",
			logkeys.Volume, r.Name, logkeys.Path, s.path)
	}
	return s.bind(r, path, options, readOnly)
}

func (s subvolumes) mounts(table []attach.Mount, name string) ([]attach.Mount, error) {
	return s.bindings(table, name), nil
}

func (s subvolumes) stats(r local.Record, path string, project uint32) (volume.Stats, error) {
	return s.counted(r, path, project)
}

// simpleQuotas reports whether a btrfs has simple quotas, and turns them on where it has none. The error is a
// [volume.ErrInvalid] if it cannot have them.
func simpleQuotas(dir *os.File) error {
	mode, err := quotaMode(dir)
	if err == nil && mode == "" {
		err = kernel.EnableQuotaGroups(int(dir.Fd()), true)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			return volume.Invalid("backend", "needs simple quotas of btrfs, which Linux has from 6.7 on; choose the backend image")
		}
		if err == nil {
			mode, err = quotaMode(dir)
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("simple quotas of btrfs: %w", err)
	case mode != "squota":
		return volume.Invalid("backend", fmt.Sprintf("needs simple quotas of btrfs, and it has %q; "+
			"run btrfs quota disable, then btrfs quota enable --simple, or choose the backend image", mode))
	}
	return nil
}

// quotaMode returns squota or qgroup; empty where there are no quotas.
func quotaMode(dir *os.File) (string, error) {
	uuid, err := kernel.BtrfsUUID(int(dir.Fd()))
	if err != nil {
		return "", err
	}
	groups := filepath.Join("/sys/fs/btrfs", fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:]), "qgroups")
	content, err := os.ReadFile(filepath.Join(groups, "mode"))
	switch {
	case err == nil:
		return strings.TrimSpace(string(content)), nil
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	// Before Linux 6.7 there is no such file, and nothing but the older quotas.
	if _, err := os.Stat(groups); err == nil {
		return "qgroup", nil
	}
	return "", nil
}

// quotaGroups are the quota groups of a btrfs as projects.
type quotaGroups struct{ fd int }

func (quotaGroups) State() (quota.State, error) { return quota.Enforced, nil }

func (quotaGroups) Inside() uint32 { return 0 }

// Enforce cannot tell whether quotas were turned off; [Pool] looks when it is opened.
func (quotaGroups) Enforce() (already bool, err error) { return true, nil }

// Project returns 0 for what is no subvolume, and so in no quota group of its own. Which group a subvolume is in, the
// kernel does not say.
func (quotaGroups) Project(fd int) (uint32, error) {
	const top = 256 // the inode of the top directory of each subvolume
	st, err := kernel.Fstat(fd)
	if err == nil && st.Ino == top {
		err = errors.ErrUnsupported
	}
	return 0, err
}

func (quotaGroups) SetProject(int, uint32) error { return errors.ErrUnsupported }

func (g quotaGroups) SetLimit(id uint32, limit volume.Size) error {
	return wrap(kernel.LimitQuotaGroup(g.fd, groupOf(id), uint64(limit.Bytes)), "set the limit of quota group 1/%d", id)
}

func (g quotaGroups) Read(id uint32) (quota.Quota, error) {
	found, err := kernel.QuotaGroups(g.fd, groupOf(id), groupOf(id))
	if err != nil || len(found) == 0 {
		return quota.Quota{ID: id}, wrap(err, "read quota group 1/%d", id)
	}
	return asQuota(found[0]), nil
}

func (g quotaGroups) From(id uint32) iter.Seq2[quota.Quota, error] {
	return func(yield func(quota.Quota, error) bool) {
		for from := groupOf(id); from <= groupOf(math.MaxUint32); {
			found, err := kernel.QuotaGroups(g.fd, from, groupOf(math.MaxUint32))
			if err != nil {
				yield(quota.Quota{}, fmt.Errorf("list the quota groups: %w", err))
				return
			}
			if len(found) == 0 {
				return
			}
			for _, f := range found {
				if !yield(asQuota(f), nil) {
					return
				}
				from = f.ID + 1
			}
		}
	}
}

func asQuota(g kernel.QuotaGroup) quota.Quota {
	size := func(n uint64) volume.Size { return volume.Size{Bytes: int64(min(n, math.MaxInt64))} }
	return quota.Quota{ID: uint32(g.ID), Used: size(g.Used), Limit: size(g.Limit)}
}
