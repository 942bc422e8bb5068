package actors

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// Progress says what an operation waits for. Its operation writes, others read.
type Progress struct{ step atomic.Pointer[step] }

type step struct {
	text  string
	since time.Time
}

// Waits says what the operation waits for from now on, such as "NFS server 10.0.0.1"; empty for nothing.
func (p *Progress) Waits(text string) { p.step.Store(&step{text, time.Now()}) }

// String says what the operation waits for, and since when.
func (p *Progress) String() string {
	if p == nil {
		return ""
	}
	if s := p.step.Load(); s != nil && s.text != "" {
		return fmt.Sprintf("waits for %s since %s, ", s.text, duration.When(s.since))
	}
	return ""
}

// patience is the timer of a subject that answers callers before their operation has ended.
type patience struct{ timer *time.Timer }

// patienceOver says that a caller may have waited long enough.
type patienceOver struct{}

func (p *patience) stop() {
	StopTimer(p.timer)
	p.timer = nil
}

// waitPatiently sets the timer, if there is something to wait for and it is not set.
func (s *subject) waitPatiently(c actor.Context) {
	if s.Patience == 0 || s.patience.timer != nil {
		return
	}
	first, ok := s.oldest()
	if !ok {
		return
	}
	root, self := c.ActorSystem().Root, c.Self()
	s.patience.timer = time.AfterFunc(time.Until(first.Add(s.Patience)), func() { root.Send(self, &patienceOver{}) })
}

// oldest is when the first caller came that waits.
func (s *subject) oldest() (first time.Time, ok bool) {
	lists := []callers{s.later}
	if s.running != nil {
		lists = append(lists, s.running.waiting)
	}
	for _, list := range lists {
		for _, m := range list {
			if !ok || m.asked.Before(first) {
				first, ok = m.asked, true
			}
		}
	}
	return first, ok
}

// impatient answers the callers that have waited long enough. The operation goes on.
func (s *subject) impatient(c actor.Context) {
	s.patience.stop()
	if op := s.running; op != nil {
		op.waiting = s.dismiss(op.waiting)
		s.later = s.dismiss(s.later)
		s.waitPatiently(c)
	}
}

// dismiss answers those of the callers that have waited long enough, and returns the others.
func (s *subject) dismiss(all callers) (left callers) {
	op, kind := s.running, s.Impatient
	if kind == nil {
		kind = volume.ErrUnavailable
	}
	for _, m := range all {
		if time.Since(m.asked) < s.Patience {
			left = append(left, m)
			continue
		}
		if !op.late && s.Late != nil {
			op.late = true
			s.Late(s.id, op.began)
		}
		m.Fail(fmt.Errorf("%w: %s: %s %sruns since %s and goes on; the same call gets its outcome", kind, s.name, op.Name,
			op.Progress, duration.When(op.began)))
	}
	return left
}
