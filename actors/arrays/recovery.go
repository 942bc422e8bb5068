package arrays

import (
	"context"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// recovered returns the records that earlier runs have left, without those of which nothing is on the node any
// more, because it was booted since, and without notes. It asks the mount table and sysfs only.
func recovered(ctx context.Context, cfg Config) (left []staged.Record) {
	all, err := cfg.Staged.All()
	if err != nil {
		// Calls for these fail as long as their records cannot be read, and a session stays while it has disks.
		cfg.Log.Error(err, "some records of staged volumes cannot be read; goes on with the others", "read", len(all))
	}
	for _, r := range all {
		if isNote(r) {
			continue
		}
		t := &task{environment: &environment{Config: cfg}, volume: r.Volume}
		stale, err := t.isStale(ctx, r)
		if err == nil && stale {
			t.forgetTarget(ctx, r)
			err = t.drop(r)
		}
		switch {
		case err != nil:
			cfg.Log.Error(err, "keeps the record of a volume, of which the node may have something", "volume", r.Volume)
			left = append(left, r)
		case stale:
			cfg.Log.Info("forgets a volume of which nothing is left since the node was booted", "volume", r.Volume)
		default:
			left = append(left, r)
		}
	}
	return left
}

// forgetTarget removes what the host keeps of a target without a session: it holds the secret of CHAP. A login writes
// it again. That it fails is no reason to keep the volume's record.
func (t *task) forgetTarget(ctx context.Context, r staged.Record) {
	if target := r.Attachment.Target; target != "" {
		if err := t.Initiator.Forget(ctx, target); err != nil {
			t.Log.Error(err, "leaves what the host's open-iscsi keeps of a target, and with it the secret of the login", "iscsiTarget", target)
		}
	}
}

// isStale reports whether nothing is left of what a record tells of. A device has a session.
func (t *task) isStale(ctx context.Context, r staged.Record) (bool, error) {
	now, err := t.trace(ctx, r)
	if err != nil || now.there || len(now.elsewhere) > 0 {
		return false, err
	}
	if r.Attachment.Protocol == pools.ISCSI && r.Attachment.Target != "" {
		_, session, err := t.Initiator.Session(ctx, r.Attachment.Target)
		return !session, err
	}
	return true, nil
}
