package check

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

const (
	// never is beyond any run: a volume that is attached has no deadline.
	never = 24 * time.Hour
	// connects is how long a driver may take to connect to its gateway.
	connects = 5 * time.Second
)

// BeginAttachment says that a pod is about to come that attaches a retained volume, by a
// volume which has no data of its own. The returned function says that nothing is left of
// it. It is nil if the volume is over, or may go before.
func (c *Checker) BeginAttachment(v, by *history.Volume) (end func()) {
	r := c.follows(v)
	if r == nil || !c.certain(r) {
		return nil
	}
	c.mu.Lock()
	c.lookers[by.ID] = by
	c.mu.Unlock()
	v.BeginAttachment(by)
	return func() {
		v.EndAttachment()
		if by.LastOK(history.Publish).IsZero() {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts.Attached++
	}
}

// attachment is that of the volume; its By is nil if there is none.
func (r *retained) attachment() history.Attachment {
	if r.volume == nil {
		return history.Attachment{}
	}
	return r.volume.Attachment()
}

// attachedUntil is from when on a pod that attached the volume may have let it go: zero if
// no pod has attached it yet, and a day from now as long as one has it.
func (r *retained) attachedUntil() time.Time {
	by := r.attachment().By
	if by == nil || by.LastOK(history.Publish).IsZero() {
		return time.Time{}
	}
	if sent := by.FirstSent(history.Unpublish); !sent.IsZero() {
		return sent
	}
	return time.Now().Add(never)
}

// refusedAttach reports whether a driver may refuse to attach a volume by an answer: it may
// be gone, or busy, or too much is attached.
func (c *Checker) refusedAttach(v *history.Volume, call history.Call) bool {
	if v.Attaches == nil || call.Method != history.Publish {
		return false
	}
	switch call.Code() {
	case codes.Aborted:
		return true // a person reads it, or decides about it
	case codes.Unavailable:
		// The gateway has confirmed whose the volume is, so the driver asks it about the pod as well.
		return c.cfg.Timeline.During(call.From.Add(-connects), call.To, workload.DaemonKill, workload.SlowDisk, workload.MachineSlow) ||
			call.From.Sub(c.started) < connects
	case codes.NotFound:
		r := c.follows(v.Attaches)
		return r == nil || c.mayGo(r, call.To)
	case codes.ResourceExhausted:
		return c.mayBeTooMuch(v, call)
	}
	return false
}

// judgeLookers reports what the driver remembers of volumes that had no data of their own.
func (c *Checker) judgeLookers(list []Buried) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range list {
		if v := c.lookers[b.ID]; v != nil {
			c.cfg.Findings.Add(history.Attached, v, fmt.Sprintf("it had no data of its own, and has a tombstone, which says: %s", b.Reason))
		}
	}
}
