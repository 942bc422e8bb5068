package ephemeral

import (
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/messages"
)

// lookForPod looks into whether the kubelet has left the volume behind without an unpublish: its pod directory
// has been gone for the grace time, or the volume has been mounted nowhere for as long. A kubelet may be about
// to publish it again, hence the grace time. It returns the operation that takes the volume over.
func (v *subject) lookForPod(m *messages.PodsSeen) *actors.Operation {
	if v.record == nil || !v.record.Phase.Live() {
		return nil
	}
	names := kubelet.PodsOf(v.PodsDir, v.record)
	if len(names) == 0 {
		return nil
	}
	there := false
	for _, name := range names {
		if _, ok := m.Names[name]; ok {
			there = true
		}
	}
	last := v.longGone(&v.absentSince, !there, m.At)
	if there && m.Mounted != nil {
		nowhere := v.usedAt(v.record, "", m.Mounted(v.record.Data())) == ""
		last = v.longGone(&v.nowhereSince, nowhere, m.At)
		if !nowhere {
			v.doubt(false)
		}
	}
	if !last {
		return nil
	}
	v.absentSince, v.nowhereSince = time.Time{}, time.Time{}
	return v.change(operation{name: "abandon", run: (*task).abandon})
}

// longGone reports whether something has been gone for the grace time.
func (v *subject) longGone(since *time.Time, gone bool, now time.Time) bool {
	switch {
	case !gone:
		*since = time.Time{}
		return false
	case since.IsZero():
		*since = now
	}
	return now.Sub(*since) >= v.OrphanGrace
}

// doubt says once that nothing reports whether the volume's pod will come back, as long as that is so.
func (v *subject) doubt(doubted bool) {
	if doubted == v.doubted {
		return
	}
	v.doubted = doubted
	v.Metrics.VolumeUnmounted(doubted)
	if doubted {
		r := v.known()
		v.Log.Info("a published volume is mounted nowhere, and its target is still there; it is kept until the kubelet publishes or "+
			"unpublishes it; if its pod is gone, remove the target from what the kubelet has left in the directory of the pod",
			logkeys.About(r, logkeys.Directory, kubelet.PodDir(v.PodsDir, r.Pod))...)
	}
}
