package tasks

import (
	"cmp"
	"context"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// judgeDisk decides whether the disk that a node has found for an attachment is the volume's.
func (t *task) judgeDisk(ctx context.Context, a *v1alpha1.PoolAttachment) error {
	v, err := t.usableVolume(ctx, a.Spec.VolumeName)
	if err != nil {
		return err
	}
	wwid := a.Status.WWID
	why := ""
	if v.Status.WWID == "" {
		if why, err = t.otherDisk(ctx, a, v); err != nil {
			return err
		}
	}
	if why == "" {
		if v.Status.WWID == "" {
			// Another node may have found another one meanwhile.
			if err := t.writeStatus(ctx, v, func() { v.Status.WWID = cmp.Or(v.Status.WWID, wwid) }); err != nil {
				return err
			}
		}
		if v.Status.WWID != wwid {
			why = fmt.Sprintf("the disk of volume %s is %s, and node %s has found %s; see what the array has there. If the volume has another "+
				"disk for good, remove status.wwid of its PoolVolume", v.Name, v.Status.WWID, a.Spec.NodeName, wwid)
		}
	}
	if why != "" {
		err := fmt.Errorf("%s", why)
		t.warn(a, "WrongDisk", err)
		t.warn(v, "WrongDisk", err)
	}
	return t.writeStatus(ctx, a, func() {
		s := &a.Status
		if s.WWID != wwid {
			return // the node has found another one since, on which nothing is decided
		}
		s.AcceptedWWID, s.RefusedWWID, s.Message = wwid, "", ""
		if why != "" {
			s.AcceptedWWID, s.RefusedWWID, s.Message = "", wwid, why
		}
	})
}

// otherDisk says why a disk is not that of a volume which has none yet; empty if it is. The array tells what is at the LUN where
// the node has found it, and how large that is.
func (t *task) otherDisk(ctx context.Context, a *v1alpha1.PoolAttachment, v *v1alpha1.PoolVolume) (string, error) {
	pool, err := t.UsePool(ctx, v.Spec.PoolName)
	if err != nil {
		return "", err
	}
	doing := "compare the disk of volume " + v.Name
	at, err := pool.Array.Attachments(ctx, v.Status.ID)
	if err != nil {
		return "", t.arrayError(pool.Name, err, doing)
	}
	if !isAt(at, a, pool.IQN) {
		return fmt.Sprintf("the array of pool %s does not have volume %s at LUN %d for node %s any more, where the node has found the disk %s",
			pool.Name, v.Name, rules.LUN(a), a.Spec.NodeName, a.Status.WWID), nil
	}
	is, err := pool.Array.Volume(ctx, v.Status.ID)
	if err != nil {
		return "", t.arrayError(pool.Name, err, doing)
	}
	if found := array.Size(a.Status.DiskBytes); max(found-is.Size, is.Size-found) >= array.GiB {
		return fmt.Sprintf("the array of pool %s says that volume %s has %s, and the disk %s that node %s has found for it has %s", pool.Name,
			v.Name, is.Size, a.Status.WWID, a.Spec.NodeName, found), nil
	}
	holder, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.ClaimDisk{Pool: v.Spec.PoolName, WWID: a.Status.WWID, Volume: v.Name})
	if err != nil || holder == v.Name {
		return "", err
	}
	return fmt.Sprintf("the disk %s that node %s has found for volume %s is that of volume %s", a.Status.WWID, a.Spec.NodeName, v.Name,
		holder), nil
}

// isAt reports whether the array has a volume attached where an attachment says, of those that there are.
func isAt(there []array.Attachment, a *v1alpha1.PoolAttachment, target string) bool {
	for _, at := range there {
		if at.ServerID == a.Status.ServerID && at.LUN == rules.LUN(a) && cmp.Or(at.Target, target) == a.Status.Target {
			return true
		}
	}
	return false
}
