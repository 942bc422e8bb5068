package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// troubleSlack is how long an operation that met a trouble may still run, and
// share its outcome with a new call, when the trouble is over.
const troubleSlack = time.Second

// answer is all that decides whether an answer is acceptable.
type answer struct {
	method history.Method
	code   codes.Code
	took   time.Duration
	// patience is what it may take.
	patience time.Duration
	// cancelled: the client gave this call up itself.
	cancelled bool
	// outage: the driver was down by our doing at some time of the call.
	outage bool
	// contended: another call for this volume ran, or may still run because
	// its client never saw its end.
	contended bool
	// full: the disk had no room or no inodes, or shortly before.
	full bool
	// slow: the disk stood still.
	slow bool
	// held: something keeps the volume from being unmounted.
	held bool
	// removed: the target or the data was taken away under the driver.
	removed bool
}

// mounting reports whether a call is on the way to a mount; the others undo.
func mounting(m history.Method) bool {
	switch m {
	case history.Publish, history.Stage, history.ControllerPublish:
		return true
	}
	return false
}

// objection says which promise an answer breaks, and why; nothing if it is
// acceptable.
func objection(a answer) (broken history.Promise, why string) {
	undoing := a.method.OfVolume() && !mounting(a.method)
	// What is gone from under the driver may fail a mount in any way. It is in
	// no call's way when the mount is to be undone.
	if a.removed && mounting(a.method) {
		return isolation(a)
	}
	switch a.code {
	case codes.OK:
		return isolation(a)
	case codes.Canceled:
		if a.cancelled || a.outage {
			return isolation(a)
		}
		return history.AnyOrder, "the client did not cancel the call"
	case codes.DeadlineExceeded:
		if a.cancelled || a.outage || a.slow {
			return "", ""
		}
		return history.Independent, "the call took longer than the kubelet waits, or the driver gave up by itself"
	case codes.Unavailable:
		if a.outage {
			return "", ""
		}
		return history.Lives, "the driver was neither starting nor stopping"
	case codes.Aborted:
		switch {
		case !a.method.OfVolume():
			return history.AnyOrder, "the method concerns no volume, so nothing can be in its way"
		case a.contended, a.outage, a.held, a.slow, a.full && !undoing:
			return isolation(a)
		case a.full:
			return history.FullDisk, "a full disk is no reason against an unmount, which is what makes room"
		}
		return history.AnyOrder, "no other call for this volume was running"
	case codes.ResourceExhausted:
		switch {
		case a.full && undoing:
			return history.FullDisk, "a full disk is no reason against an unmount, which is what makes room"
		case a.full && mounting(a.method):
			return isolation(a)
		}
		return history.AnyOrder, "the disk had room"
	}
	if a.full && undoing {
		return history.FullDisk, "the disk is full, and no situation of the run excuses this code"
	}
	return history.AnyOrder, "no situation of the run excuses this code"
}

// Called judges a call and its answer, at once after it. Calls that a crash of
// the kubelet gave up are not for it, nor those with bad input.
func (c *Checker) Called(v *history.Volume, call history.Call) {
	if call.Bad {
		return
	}
	if call.Method == history.Publish {
		c.notePublish()
	}
	troubled := func(kinds ...workload.FaultKind) bool {
		return v.Troubled(call.From.Add(-troubleSlack), call.To, kinds...)
	}
	broken, why := objection(answer{
		method: call.Method, code: call.Code(), took: call.Took(), patience: c.cfg.Patience,
		cancelled: call.Cancelled, contended: call.Contended,
		outage:  c.cfg.Timeline.During(call.From, call.To, workload.DaemonKill),
		full:    c.full(call.From, call.To),
		slow:    c.cfg.Timeline.During(call.From.Add(-troubleSlack), call.To, workload.SlowDisk, workload.MachineSlow),
		held:    troubled(workload.BusyTarget, workload.NestedMount),
		removed: troubled(workload.PodRemoved, workload.VolumeRemoved, workload.VolumeSymlink),
	})
	if call.Method == history.Publish && history.Final(call.Code()) && call.Err != nil && c.leftMounted(v, call) {
		return
	}
	if broken != "" && !c.refusedAttach(v, call) {
		c.cfg.Findings.Add(broken, v, fmt.Sprintf("%s at %s was answered %s after %s: %s (%s)", call.Method,
			story.Clock(call.From), call.Code(), call.Took().Round(time.Millisecond), why, said(call.Err)))
	}
	if call.Method == history.Publish && call.Err == nil && v.Attaches != nil {
		c.judgeHoard(v)
	}
	if call.Method == history.Unpublish && call.Err == nil && !call.Contended {
		c.checkTarget(v)
	}
}

func said(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// full reports whether a volume may have been refused for want of room at some
// time between the two: a driver measures now and then only.
func (c *Checker) full(from, to time.Time) bool {
	from = from.Add(-c.slack())
	return c.cfg.Timeline.During(from, to, workload.DiskFull, workload.NoInodes) || c.pressure.noRoom(from, to)
}

// slack is for how long something may still be done that was decided by an
// earlier measurement of the disk.
func (c *Checker) slack() time.Duration { return 2*c.cfg.PruneInterval + time.Second }

// leftMounted reports that a publish failed for good, as its code says, and left
// a mount. Whatever another call may have mounted is not held against it.
func (c *Checker) leftMounted(v *history.Volume, call history.Call) bool {
	if call.Contended || !v.LastOK(history.Publish).IsZero() {
		return false
	}
	s := c.told(story.Event{At: call.From, What: story.Publish}, story.Event{At: call.To, What: story.Refused})
	if _, err := c.tellMount(s, v); s.Broken() == "" {
		c.fail(err)
		return false
	}
	c.cfg.Findings.Add(history.FailedPublish, v, fmt.Sprintf("%s at %s failed with %s, which says that nothing is mounted: %s (%s)",
		call.Method, story.Clock(call.From), call.Code(), s.Broken(), said(call.Err)))
	return true
}

// checkTarget reports what there still is of the target of a volume that was
// unpublished.
func (c *Checker) checkTarget(v *history.Volume) {
	s := c.told(calls(v)...)
	if _, err := c.tellMount(s, v); err != nil {
		c.fail(err)
		return
	}
	if s.Broken() != "" {
		c.cfg.Findings.Add(history.NoLeak, v, "its unpublish succeeded: "+s.Broken())
		return
	}
	switch _, err := os.Lstat(v.Target); {
	case err == nil:
		c.cfg.Findings.Add(history.NoLeak, v, fmt.Sprintf("its unpublish succeeded, but %s was not removed", v.Target))
	case !errors.Is(err, fs.ErrNotExist):
		c.fail(fmt.Errorf("target of volume %s: %w", v.ID, err))
	}
}

func (c *Checker) isMounted(path string) (bool, error) {
	mounted, err := c.cfg.Mounted(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("is %s mounted: %w", path, err)
	}
	return mounted, nil
}
