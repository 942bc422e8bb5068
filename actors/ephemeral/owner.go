package ephemeral

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Own notes the owner of a volume, as a gateway said of its pod. A retained volume has that durably when
// Own returns. A volume that is published keeps it in memory and writes it with its next change, so
// that it costs no sync; after a crash its owner has to be asked for again.
//
// What was Confirmed stays. The error is a [volume.ErrInvalid] that names the field, a
// [volume.ErrNotFound] when no such volume of that pod is known or when it is being deleted, or why
// the record could not be written.
func (n *Node) Own(ctx context.Context, id volume.ID, pod volume.PodUID, owner volume.Owner) error {
	if owner.Verdict == volume.Unasked {
		return volume.Invalid("owner.verdict", "is missing")
	}
	if err := owner.Check(); err != nil {
		return err
	}
	return n.Change(ctx, &messages.OwnVolume{Routing: n.routing(ctx, id), Pod: pod, Owner: owner})
}

// Holdings returns how many retained volumes there are of each namespace, in no order. While nothing
// has changed it returns the same slice again, at no cost. The slice is shared: the caller does not
// change it.
func (n *Node) Holdings(ctx context.Context) ([]volume.Holding, error) {
	last := n.holdings.Load()
	if last == nil {
		last = &messages.Holdings{}
	}
	now, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.CountHoldings{Version: last.Version})
	switch {
	case err != nil:
		return nil, err
	case now.Version == last.Version:
		return last.All, nil
	}
	n.holdings.Store(&now)
	return now.All, nil
}

// countHoldings counts the volumes that are in the lists.
func (v *volumes) countHoldings(m *messages.CountHoldings) {
	v.tell()
	answer := messages.Holdings{Version: 1 + v.index.Changes()}
	if answer.Version != m.Version {
		answer.All = v.index.Holdings()
	}
	m.Send(answer, nil)
}

// news is what a source says of a volume's pod: its owner, or how it ended.
type news struct {
	messages.Request
	pod   volume.PodUID
	reply messages.Reply[struct{}]
	// learn returns the record with that, and whether it was news.
	learn func(volume.Record) (learned volume.Record, changed bool)
}

// learn answers for a volume that sleeps and has nothing to learn. Otherwise the volume's actor does.
func (v *volumes) learn(n news) (done bool) {
	id := n.Route().ID
	if v.supervisor.IsAwake(id) {
		return false
	}
	asleep, known := v.look(id)
	switch {
	case !known || asleep.Pod != n.pod:
		n.Fail(errOtherPod(id, n.pod))
		return true
	case asleep.Phase == volume.Deleting || asleep.Tries > 0:
		n.Fail(errBeingDeleted(id))
		return true
	}
	_, changed := n.learn(asleep.Record)
	if !changed {
		n.reply.Send(struct{}{}, nil)
	}
	return !changed
}

// learn takes over what a source says. It returns the operation that makes durable what a retained volume has learned,
// which is what record returns.
func (v *subject) learn(n news, record func() *actors.Operation) *actors.Operation {
	switch {
	case v.record == nil || v.record.Pod != n.pod:
		n.Fail(errOtherPod(n.Route().ID, n.pod))
		return nil
	case v.deletes():
		n.Fail(errBeingDeleted(n.Route().ID))
		return nil
	}
	learned, changed := n.learn(*v.record)
	switch {
	case !changed:
		n.reply.Send(struct{}{}, nil)
	case v.record.Phase.Live():
		v.record = &learned
		v.tell()
		n.reply.Send(struct{}{}, nil)
	default:
		return record()
	}
	return nil
}

// ownerNews is what an OwnVolume says.
func ownerNews(m *messages.OwnVolume) news {
	return news{Request: m, pod: m.Pod, reply: m.Reply, learn: func(r volume.Record) (volume.Record, bool) {
		before := r.Owner
		r.Owner = before.Learn(m.Owner)
		return r, r.Owner != before
	}}
}

// own takes over whose the volume is.
func (v *subject) own(m *messages.OwnVolume) *actors.Operation {
	return v.learn(ownerNews(m), func() *actors.Operation {
		return v.rewrite("own", m, func(t *task) error { return t.own(m.Owner) })
	})
}

// own records whose a retained volume is. Nothing else of it changes.
func (t *task) own(said volume.Owner) error {
	next := *t.record
	next.Owner = next.Owner.Learn(said)
	return t.save(next)
}

// tellPublished calls Config.Published after a publish, unless the volume was published with the
// same names before.
func (v *subject) tellPublished(before *volume.Record) {
	if v.Published == nil || v.record == nil || v.record.Owner.Verdict != volume.Unasked {
		return
	}
	if before == nil || before.Phase != volume.Published || before.PodName != v.record.PodName || before.Namespace != v.record.Namespace {
		v.Published(*v.record)
	}
}

// errOtherPod is why a volume has no owner or outcome to learn of.
func errOtherPod(id volume.ID, pod volume.PodUID) error {
	return fmt.Errorf("%w: volume %s of pod %s", volume.ErrNotFound, id, pod)
}

func errBeingDeleted(id volume.ID) error {
	return fmt.Errorf("%w: volume %s is being deleted", volume.ErrNotFound, id)
}
