package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// Where is where a node finds a volume at present.
type Where struct {
	// Export is what it mounts over NFS.
	Export string
	// Over iSCSI, Target is the IQN of the array, Address its address and port.
	Target, Address string
	LUN             int
}

// poolAttachment is a PoolAttachment, as far as a node reads it.
type poolAttachment struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Protocol pools.Protocol `json:"protocol"`
	} `json:"spec"`
	Status struct {
		State       string `json:"state"`
		Export      string `json:"export"`
		Target      string `json:"target"`
		Portal      string `json:"portal"`
		LUN         *int   `json:"lun"`
		ISCSIStatus string `json:"iscsiStatus"`
		Message     string `json:"message"`
		WWID        string `json:"wwid"`
		DiskBytes   int64  `json:"diskBytes"`
		Accepted    string `json:"acceptedWWID"`
		Refused     string `json:"refusedWWID"`
	} `json:"status"`
}

// States of an attachment and of a session, as the custom resource has them.
const (
	stateReady        = "Ready"
	stateLoginPending = "ISCSILoginPending"
	sessionActive     = "Active"
	sessionGone       = "Disconnected"
)

// conflicts is how often a change is tried that meets one of the controller's.
const conflicts = 5

func (c *Client) attachment(ctx context.Context, name string) (a poolAttachment, err error) {
	err = c.do(ctx, request{verb: "get", group: group, resource: "poolattachments", name: name}, &a)
	return a, err
}

// Where returns where an attachment's volume is. The array may have moved since the volume was attached;
// the controller then writes its new address. attachment is the name that [pools.AttachmentName] returns.
func (c *Client) Where(ctx context.Context, attachment string) (Where, error) {
	a, err := c.attachment(ctx, attachment)
	if err != nil {
		return Where{}, err
	}
	switch s := a.Status; {
	case a.Spec.Protocol == pools.NFS && s.Export != "":
		return Where{Export: pools.CleanExport(s.Export)}, nil
	case a.Spec.Protocol == pools.ISCSI && s.Portal != "" && s.Target != "" && s.LUN != nil:
		return Where{Target: s.Target, Address: s.Portal, LUN: *s.LUN}, nil
	}
	return Where{}, fmt.Errorf("%w: the PoolAttachment %s, in the state %q, does not say where its volume is; see its events",
		volume.ErrUnavailable, attachment, a.Status.State)
}

// Attached reports whether an attachment is there. One that is being deleted still is: its volume may be attached
// on the array.
func (c *Client) Attached(ctx context.Context, attachment string) (bool, error) {
	_, err := c.attachment(ctx, attachment)
	if errors.Is(err, volume.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ReportSession writes into an attachment whether the node has the session that it needs. It changes these
// two fields of the status and no other, and none in a version that it has not seen: the controller
// writes the status too. An attachment that is gone needs no report.
func (c *Client) ReportSession(ctx context.Context, attachment string, active bool) error {
	var err error
	for range conflicts {
		if err = c.reportSession(ctx, attachment, active); !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, volume.ErrNotFound) {
		return nil
	}
	return err
}

func (c *Client) reportSession(ctx context.Context, name string, active bool) error {
	a, err := c.attachment(ctx, name)
	if err != nil {
		return err
	}
	changes := a.changes(active)
	if len(changes) == 0 {
		return nil
	}
	return c.patchStatus(ctx, name, a, changes)
}

// changes returns what a report changes in the status. Ready and ISCSILoginPending are the only states that
// depend on the session.
func (a *poolAttachment) changes(active bool) map[string]any {
	changes := map[string]any{}
	if a.Spec.Protocol != pools.ISCSI {
		return changes
	}
	session, from, to := sessionGone, stateReady, stateLoginPending
	if active {
		session, from, to = sessionActive, stateLoginPending, stateReady
	}
	if a.Status.ISCSIStatus != session {
		changes["iscsiStatus"] = session
	}
	if a.Status.State == from {
		changes["state"] = to
	}
	return changes
}

// Disk is the disk that a node has found where an attachment says that the volume is.
type Disk struct {
	WWID  string
	Bytes int64
}

// ErrOtherDisk: the controller has found that a disk is not the volume's.
var ErrOtherDisk = errors.New("the controller refuses the disk")

// ConfirmDisk writes into an attachment which disk the node has found, and waits until the controller has compared that
// with what the array has there. The error is [ErrOtherDisk] if it is not the volume's disk, and volume.ErrUnavailable if
// the controller has not said.
func (c *Client) ConfirmDisk(ctx context.Context, attachment string, d Disk) error {
	until := time.Now().Add(c.confirming)
	for asked := false; ; {
		a, err := c.attachment(ctx, attachment)
		switch {
		case err != nil:
			return err
		case a.Status.Accepted == d.WWID:
			return nil
		case asked && a.Status.Refused == d.WWID:
			return fmt.Errorf("%w: %s", ErrOtherDisk, a.Status.Message)
		case time.Now().After(until):
			return fmt.Errorf("%w: the PoolAttachment %s says which disk the node has found, and the controller has not said whether it is "+
				"the volume's; see the controller's log", volume.ErrUnavailable, attachment)
		}
		if !asked {
			// What was refused once is asked again: a person may have said since that the volume has another disk.
			asked = a.Status.WWID == d.WWID && a.Status.DiskBytes == d.Bytes && a.Status.Refused == ""
		}
		if !asked {
			err := c.patchStatus(ctx, attachment, a, map[string]any{"wwid": d.WWID, "diskBytes": d.Bytes, "refusedWWID": nil})
			if err != nil && !errors.Is(err, errChanged) {
				return err
			}
			asked = err == nil
			continue
		}
		if retry.Pause(ctx, c.confirmPause) != nil {
			return fmt.Errorf("%w: %w", volume.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// patchStatus changes fields of the status of an attachment in the version that was seen.
func (c *Client) patchStatus(ctx context.Context, name string, a poolAttachment, changes map[string]any) error {
	return c.do(ctx, request{verb: "patch", group: group, resource: "poolattachments", name: name, subresource: "status",
		body: map[string]any{"metadata": metadata{ResourceVersion: a.Metadata.ResourceVersion}, "status": changes}}, nil)
}
