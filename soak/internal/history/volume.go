package history

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// settleLimit is how long a call may go on in the driver that its client gave
// up. It excuses a refusal for so long and no longer: a volume that is refused
// for ever is not busy.
const settleLimit = 10 * time.Second

// longestStory is how many events of a volume are remembered; more only come of
// calls that fail again and again.
const longestStory = 64

// Volume is the history of one volume of one pod. It may be used by many
// goroutines.
type Volume struct {
	// ID is the volume ID; Pod the UID of its pod; Name that of the volume in it.
	ID        string
	Namespace string
	PodName   string
	Pod       string
	Name      string
	// Target is where the pod wants it, Data where the driver keeps its files:
	// empty for a persistent volume.
	Target string
	Data   string

	// Owner is the kind and the name of what made its pod; empty for nothing.
	Owner string

	ReadOnly bool
	Content  workload.Content
	// OnFailure says that it is to be kept only if its pod fails, Failed that it does.
	OnFailure, Failed bool
	// Lifespan is how long its pod has it kept; 0 stands for the driver's own.
	Lifespan time.Duration

	// Attaches is the retained volume of another pod that it attaches, nil for nearly all.
	// Set it before the first call.
	Attaches *Volume

	mu      sync.Mutex
	running map[*Call]struct{}
	// unsettled is when the last call ended whose client never learned what
	// became of it: the driver may still be at work. Zero if there is none.
	unsettled time.Time
	// publishing is until when the driver may have been at work on a publish that is over.
	publishing time.Time
	firstSent  map[Method]time.Time
	lastOK     map[Method]time.Time
	events     []event
	forgotten  int
	troubles   []Trouble
	removal    Removal
	pin        Pin
	release    Release
	// endTold is when the driver was told how the pod has ended.
	endTold time.Time

	attachment Attachment
	owning     Owning
}

// event is a line of the story: a call, or something else that happened.
type event struct {
	at   time.Time
	call *Call
	what string
}

// Trouble is a fault that befell this volume, from one moment to another.
type Trouble struct {
	Kind workload.FaultKind
	From time.Time
	// To is zero while it lasts; what was done once lasts for ever.
	To time.Time
}

// Note adds a line to the story: a phase, a fault, an observation.
func (v *Volume) Note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(event{at: time.Now(), what: fmt.Sprintf(format, args...)})
}

// Afflict notes that a fault begins to concern this volume; the returned
// function notes its end.
func (v *Volume) Afflict(kind workload.FaultKind, what string) (relieve func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	v.remember(event{at: now, what: fmt.Sprintf("fault %s: %s", kind, what)})
	v.troubles = append(v.troubles, Trouble{Kind: kind, From: now})
	i := len(v.troubles) - 1
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.troubles[i].To.IsZero() {
			v.troubles[i].To = time.Now()
			v.remember(event{at: v.troubles[i].To, what: fmt.Sprintf("fault %s: over", kind)})
		}
	}
}

// Troubles are the faults that befell this volume so far.
func (v *Volume) Troubles() []Trouble {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.troubles)
}

// Troubled reports whether any of the kinds befell this volume, at any time from
// one moment to another.
func (v *Volume) Troubled(from, to time.Time, kinds ...workload.FaultKind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.troubles {
		if slices.Contains(kinds, t.Kind) && !t.From.After(to) && (t.To.IsZero() || !t.To.Before(from)) {
			return true
		}
	}
	return false
}

// Begin notes that a call is about to be sent. The caller ends it with End.
func (v *Volume) Begin(m Method, cancelled bool) *Call {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.running == nil {
		v.running = make(map[*Call]struct{})
		v.firstSent = make(map[Method]time.Time)
		v.lastOK = make(map[Method]time.Time)
	}
	c := &Call{Method: m, From: time.Now(), Cancelled: cancelled}
	if _, ok := v.firstSent[m]; !ok {
		v.firstSent[m] = c.From
	}
	if !m.OfVolume() {
		return c
	}
	c.Contended = !v.unsettled.IsZero() && c.From.Sub(v.unsettled) < settleLimit
	for other := range v.running {
		other.Contended, c.Contended = true, true
	}
	v.running[c] = struct{}{}
	return c
}

// End notes the answer and returns the finished call.
func (v *Volume) End(c *Call, err error) Call {
	v.mu.Lock()
	defer v.mu.Unlock()
	c.To, c.Err = time.Now(), err
	delete(v.running, c)
	if err == nil {
		v.lastOK[c.Method] = c.To
	}
	if c.Method.OfVolume() {
		switch c.Code() {
		case codes.OK:
			// The calls for one volume are served one after the other, so
			// whatever was sent before this one is over.
			if c.From.After(v.unsettled) {
				v.unsettled = time.Time{}
			}
		case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
			v.unsettled = c.To
		}
		if c.Method == Publish {
			if until := c.worksUntil(); until.After(v.publishing) {
				v.publishing = until
			}
		}
		v.remember(event{at: c.From, call: c})
	}
	return *c
}

// Quiet reports whether no call for the volume is running, nor may be.
func (v *Volume) Quiet() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.running) == 0 && v.unsettled.IsZero()
}

// FirstSent is when the method was first sent for this volume, LastOK when it
// last succeeded; zero if it never was or did. Whatever the driver counts from
// a call, it counts from a moment between the two.
func (v *Volume) FirstSent(m Method) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.firstSent[m]
}

// LastOK is described with FirstSent.
func (v *Volume) LastOK(m Method) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lastOK[m]
}

// remember adds to the story. Its caller has the lock.
func (v *Volume) remember(e event) {
	if len(v.events) == longestStory {
		// The beginning tells how it came about: what goes is the middle.
		v.events = slices.Delete(v.events, longestStory/2, longestStory/2+1)
		v.forgotten++
	}
	v.events = append(v.events, e)
}

// Story tells everything that happened to the volume, a line for each event, in
// the order in which the events began.
func (v *Volume) Story() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	events := slices.Clone(v.events)
	for c := range v.running {
		events = append(events, event{at: c.From, what: fmt.Sprintf("%-19s is without an answer", c.Method)})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	lines := make([]string, 0, len(events)+1)
	for i, e := range events {
		if v.forgotten > 0 && i == longestStory/2 {
			lines = append(lines, fmt.Sprintf("... %d events left out ...", v.forgotten))
		}
		lines = append(lines, story.Clock(e.at)+"  "+e.text())
	}
	return lines
}

func (e event) text() string {
	if e.call == nil {
		return e.what
	}
	said := "OK"
	if e.call.Err != nil {
		said = fmt.Sprintf("%s: %s", e.call.Code(), status.Convert(e.call.Err).Message())
	}
	if e.call.Cancelled {
		said += " (cancelled by the client)"
	}
	return fmt.Sprintf("%-19s %8s  %s", e.call.Method, e.call.Took().Round(10*time.Microsecond), said)
}
