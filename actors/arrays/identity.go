package arrays

import (
	"cmp"
	"context"
	"errors"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/iscsi"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/internal/node/kubeapi"
)

// What proves a disk to be the volume: that it says so, by the array's ID of the volume. The disks of many arrays say
// something else. Of these the array alone knows which volume is at a LUN, and it tells the controller. So the first
// node to which such a volume is attached says by which WWID the disk goes that it has found there, and how large it is;
// the controller compares that with what the array has there, and writes the WWID into the PoolVolume. From then on the
// volume's disk is the one with that WWID, whatever the array puts at the LUN.

// idOf returns the array's ID of the volume of a record.
func idOf(r staged.Record) string { return cmp.Or(r.Attachment.Serial, r.Serial) }

// wanted returns what is known of the disk of a volume.
func wanted(r staged.Record) iscsi.Wanted {
	w := iscsi.Wanted{ID: idOf(r), WWID: r.Attachment.WWID}
	if w.WWID == "" && r.Serial != w.ID {
		w.WWID = r.Serial // as this node has found it before
	}
	return w
}

// unidentified reports whether a device of the volume's target is one that an earlier stage may have left, and of which
// nothing notes that it is the volume's.
func unidentified(r staged.Record, d attach.Device) bool {
	return r.Serial == idOf(r) && d.LUN == r.Attachment.LUN && wanted(r).MayBe(d.Identity)
}

// identify makes sure that a disk is the volume's before anything is written to it. It notes by what the node knows it.
func (t *task) identify(ctx context.Context, r *staged.Record, d attach.Device) error {
	known := d.WWID
	if d.Serial == idOf(*r) {
		known = d.Serial
	}
	if err := t.know(r, known); err != nil {
		return err
	}
	if d.Proves(idOf(*r)) || d.WWID == r.Attachment.WWID {
		return nil
	}
	bytes, err := t.Initiator.Rescan(ctx, d)
	if err != nil {
		return t.failed(err, "ask for the size of "+d.Name)
	}
	t.progress.Waits("the controller, which compares the disk with what the array has")
	err = t.Cluster.ConfirmDisk(ctx, pools.AttachmentName(t.volume, t.NodeName), kubeapi.Disk{WWID: d.WWID, Bytes: bytes})
	if !errors.Is(err, kubeapi.ErrOtherDisk) {
		if err != nil {
			return because(volume.ErrUnavailable, err, "volume %s: the controller has not confirmed that the disk %s is the volume's", t.volume,
				d.WWID)
		}
		return nil
	}
	err = because(volume.ErrUncertain, err, "volume %s: the disk %s is not the volume's", t.volume, d.WWID)
	// Nothing uses it yet. The next stage begins anew.
	if failed := t.Initiator.Delete(ctx, d); failed != nil {
		return errors.Join(err, t.failed(failed, "remove the disk "+d.Name))
	}
	return errors.Join(err, t.know(r, idOf(*r)))
}

// know notes by which serial number or WWID the node knows the volume's disk.
func (t *task) know(r *staged.Record, as string) error {
	if r.Serial == as {
		return nil
	}
	r.Serial = as
	return t.save(*r, false)
}
