package history

import (
	"time"

	"github.com/katbox/katbox/soak/story"
)

// Pin is what became of a person's request to keep the volume: until when, when it
// was sent, and when it was answered with success; zero if it was not.
type Pin struct{ Until, Sent, Done time.Time }

// Release is what became of a person's request to let the volume go: when it
// was sent, and when it was answered with success; zero if it was not.
type Release struct{ Sent, Done time.Time }

// BeginPin notes that a request to keep the volume is about to be sent: from now on
// it may be kept until then.
func (v *Volume) BeginPin(until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pin = Pin{Until: until, Sent: time.Now()}
	v.remember(event{at: v.pin.Sent, what: "a person asks to keep it until " + story.Clock(until)})
}

// EndPin notes the answer to a request to keep the volume.
func (v *Volume) EndPin(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pin.Done = v.decided("pinned", err)
}

// Pin is described at its type.
func (v *Volume) Pin() Pin {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pin
}

// BeginRelease notes that a request to let the volume go is about to be sent: from
// now on it may go after the grace.
func (v *Volume) BeginRelease() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.release = Release{Sent: time.Now()}
	v.remember(event{at: v.release.Sent, what: "a person asks to let it go"})
}

// EndRelease notes the answer to a request to let the volume go.
func (v *Volume) EndRelease(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.release.Done = v.decided("released", err)
}

// Release is described at its type.
func (v *Volume) Release() Release {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.release
}

// decided notes an answer, and returns when it came if it was a success. Its caller
// has the lock.
func (v *Volume) decided(what string, err error) (done time.Time) {
	now := time.Now()
	if err != nil {
		v.remember(event{at: now, what: "it is not " + what + ": " + err.Error()})
		return time.Time{}
	}
	v.remember(event{at: now, what: "it is " + what})
	return now
}
