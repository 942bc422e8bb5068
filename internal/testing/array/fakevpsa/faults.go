package fakevpsa

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
)

// Kind is what goes wrong.
type Kind string

// The kinds of faults.
const (
	// Delay: the request waits for Delay before the array begins with it.
	Delay Kind = "delay"
	// DelayAfter: the change is made, then the answer waits for Delay.
	DelayAfter Kind = "delay-after"
	// LoseRequest: the connection breaks, and nothing was done.
	LoseRequest Kind = "lose-request"
	// LoseAnswer: what was asked is done, then the connection breaks.
	LoseAnswer Kind = "lose-answer"
	// Hang: nothing is done and no answer comes.
	Hang Kind = "hang"
	// HangAfter: what was asked is done, and no answer comes.
	HangAfter Kind = "hang-after"
	// Cut: the answer ends after Bytes bytes.
	Cut Kind = "cut"
	// HTTP: nothing is done, and the answer is an HTTP error with the code Status and the body Text.
	HTTP Kind = "http"
	// HTML: nothing is done, and the answer is a page of HTML with the code Status; 0 is 200.
	HTML Kind = "html"
	// Refuse: nothing is done, and the answer has the status Status and the text Text.
	Refuse Kind = "refuse"
	// Submit: the answer says that the request has been submitted. It is done Delay later, or before the
	// request that comes as the Requests-th after it; when both are 0, not before Settle.
	Submit Kind = "submit"
)

var kinds = []Kind{Delay, DelayAfter, LoseRequest, LoseAnswer, Hang, HangAfter, Cut, HTTP, HTML, Refuse, Submit}

// Fault is what goes wrong with some requests.
type Fault struct {
	// ID is given by the array.
	ID   int  `json:"id"`
	Kind Kind `json:"kind"`
	// Method and Path say with which requests; empty are all. A path is that of a request, or the pattern
	// of its call, with an asterisk for the ID: /api/volumes/*/expand.json.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Skip is how many of them pass before; Times how many meet the fault, 0 is all.
	Skip  int `json:"skip,omitempty"`
	Times int `json:"times,omitempty"`
	// Met counts those that have met it.
	Met int `json:"met"`

	Delay    time.Duration `json:"delay,omitempty"`
	Requests int64         `json:"requests,omitempty"`
	Status   int           `json:"status,omitempty"`
	Text     string        `json:"text,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
}

// Fail adds a fault and returns its ID. A request waits for all delays that match it, and meets the
// first of the other faults that do.
func (a *Array) Fail(f Fault) (int, error) {
	if !slices.Contains(kinds, f.Kind) {
		return 0, fmt.Errorf("no fault is called %q", f.Kind)
	}
	switch f.Kind {
	case HTTP:
		if f.Status == 0 {
			f.Status = http.StatusInternalServerError
		}
	case HTML:
		if f.Status == 0 {
			f.Status = http.StatusOK
		}
	case Refuse:
		if f.Status == statusOK {
			f.Status = otherError
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault++
	f.ID = a.fault
	f.Met = 0
	a.faults = append(a.faults, &f)
	return f.ID, nil
}

// Heal removes a fault; all when id is 0. Requests that hang go on hanging.
func (a *Array) Heal(id int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = slices.DeleteFunc(a.faults, func(f *Fault) bool { return id == 0 || f.ID == id })
}

// Faults returns the faults that there are.
func (a *Array) Faults() []Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	return values(a.faults)
}

// take returns for how long a request waits, and a copy of the fault that it meets.
func (a *Array) take(c *call) (delay time.Duration, met *Fault) {
	for _, f := range a.faults {
		if f.Kind != Delay && met != nil || !f.matches(c) || f.Times > 0 && f.Met >= f.Times {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		f.Met++
		if f.Kind == Delay {
			delay += f.Delay
			continue
		}
		one := *f
		met = &one
	}
	return delay, met
}

func (f *Fault) matches(c *call) bool {
	if f.Method != "" && f.Method != c.method || f.Kind == Submit && c.method == http.MethodGet {
		return false
	}
	return f.Path == "" || f.Path == c.pattern || f.Path == c.path
}

func (f *Fault) is(k Kind) bool { return f != nil && f.Kind == k }

// away treats a request as an array does that is away: it does not answer.
func (a *Array) away(r *http.Request) {
	switch a.Settings().Away {
	case dataplane.Here:
	case dataplane.Network:
		hang(r)
	default:
		panic(http.ErrAbortHandler)
	}
}

// before does what goes wrong before the array begins. It returns false if that was all.
func (f *Fault) before(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case f.is(LoseRequest):
		panic(http.ErrAbortHandler)
	case f.is(Hang):
		hang(r)
	case f.is(HTTP):
		http.Error(w, f.Text, f.Status)
		return false
	case f.is(HTML):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte("<html><body><h1>The array is starting</h1>" + f.Text + "</body></html>"))
		return false
	}
	return true
}

// after does what goes wrong when the array is ready.
func (f *Fault) after(r *http.Request) {
	switch {
	case f.is(DelayAfter):
		wait(r, f.Delay)
	case f.is(LoseAnswer):
		panic(http.ErrAbortHandler)
	case f.is(HangAfter):
		hang(r)
	}
}
