package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/katbox/katbox/internal/controller/array"
)

// Attachments asks for a volume's servers.
func (c *client) Attachments(ctx context.Context, volumeID string) ([]array.Attachment, error) {
	l := allServers
	l.q = call{pattern: "volumes/{id}/servers", id: volumeID}
	var all []array.Attachment
	err := l.visit(ctx, c, func(page []server) error {
		for _, s := range page {
			all = append(all, array.Attachment{
				ServerID: string(s.ID), VolumeID: volumeID, ReadOnly: bool(s.ReadOnly), Target: string(s.Target), LUN: int(s.LUN),
			})
		}
		return nil
	})
	return all, c.volumeGone(ctx, volumeID, err)
}

// attachment finds a volume's attachment to a server record.
func (c *client) attachment(ctx context.Context, volumeID, serverID string) (array.Attachment, bool, error) {
	all, err := c.Attachments(ctx, volumeID)
	if err != nil {
		return array.Attachment{}, false, err
	}
	for _, a := range all {
		if a.ServerID == serverID {
			return a, true, nil
		}
	}
	return array.Attachment{}, false, nil
}

func (c *client) doubt(what, volumeID, serverID string) string {
	return fmt.Sprintf("%s volume %s, server %s of %s", what, volumeID, serverID, c.endpoint)
}

// Attach attaches a volume to a server record, once no earlier detach can come any more.
func (c *client) Attach(ctx context.Context, n array.NewAttachment) (array.Attachment, error) {
	var made array.Attachment
	is := false
	done := func(ctx context.Context) (bool, error) {
		var err error
		made, is, err = c.attachment(ctx, n.VolumeID, n.ServerID)
		return is, err
	}
	// An attachment that is there may go when that detach comes, so it has to be waited for either way.
	err := c.wait(ctx, c.doubt("detach", n.VolumeID, n.ServerID), func() (bool, error) {
		_, err := done(ctx)
		return false, err
	})
	if is || err != nil {
		return made, err
	}
	// Forced: other servers may have the volume too. Who may share it, Kubernetes decides.
	body := map[string]any{"volume_name": n.VolumeID, "readonly": yes(n.ReadOnly), "force": "YES"}
	if n.NFS {
		body["access_type"] = "NFS"
	}
	err = c.make(ctx, c.doubt("attach", n.VolumeID, n.ServerID), call{
		method: http.MethodPost, pattern: "servers/{id}/volumes", id: n.ServerID, body: body, limit: min(shortTime, c.timeout),
	}, done)
	if err != nil {
		return array.Attachment{}, err
	}
	return made, nil
}

// Detach detaches a volume from a server record, and looks that it is. Where an earlier attach may
// still come, it waits for that. While an earlier request to attach or detach may still come, the error is [array.ErrUncertain]
// although the volume is detached: after nil no request of this process attaches it, or takes away what is attached next.
func (c *client) Detach(ctx context.Context, volumeID, serverID string) error {
	gone, is := false, false
	done := func(ctx context.Context) (bool, error) {
		_, found, err := c.attachment(ctx, volumeID, serverID)
		gone = errors.Is(err, array.ErrNotFound)
		if gone {
			return true, nil
		}
		is = found
		return !found && err == nil, err
	}
	attach, detach := c.doubt("attach", volumeID, serverID), c.doubt("detach", volumeID, serverID)
	err := c.wait(ctx, attach, func() (bool, error) {
		_, err := done(ctx)
		return gone || is, err
	})
	if err != nil || gone {
		return err
	}
	if is {
		err = c.make(ctx, detach, call{
			// Forced: a node that is gone closes no session.
			method: http.MethodPost, pattern: "volumes/{id}/detach", id: volumeID,
			body: map[string]any{"servers": serverID, "force": "YES"}, limit: min(shortTime, c.timeout),
		}, done)
	}
	for _, doubt := range []string{attach, detach} {
		if err == nil && !gone && inDoubt.about(doubt) {
			return uncertain(fmt.Errorf("an earlier request to %s has had no answer, and may still come", doubt))
		}
	}
	return err
}
