package kubelet

import "time"

// key says what an operation is about. An empty pod stands for all pods that
// use the volume; an empty volume for the pod itself.
type key struct {
	volume string
	pod    string
}

// conflicts reports whether operations on the two may not run at the same time.
func (k key) conflicts(other key) bool {
	return k.volume == other.volume && (k.pod == other.pod || k.pod == "" || other.pod == "")
}

// pending knows which operations run and which failed a short while ago
// (kubernetes pkg/volume/util/nestedpendingoperations). The times come from the
// caller.
type pending struct {
	timing   Timing
	byVolume map[string]map[key]*attempt
}

// attempt is an operation that runs, or failed when it last ran.
type attempt struct {
	name    string
	running bool
	wait    time.Duration
	until   time.Time
}

func newPending(t Timing) *pending {
	return &pending{timing: t, byVolume: make(map[string]map[key]*attempt)}
}

// begin reports whether the operation of the name may start now, and if so notes
// that it runs. It may not while another one is in its way, or while it waits
// after an error of its own. Another operation's error does not make it wait: an
// unmount follows a failed mount at once.
func (p *pending) begin(k key, name string, now time.Time) bool {
	if p.busy(k) {
		return false
	}
	group := p.byVolume[k.volume]
	if group == nil {
		group = make(map[key]*attempt)
		p.byVolume[k.volume] = group
	}
	last := group[k]
	if last == nil || last.name != name {
		last = &attempt{name: name}
	} else if now.Before(last.until) {
		return false
	}
	last.running = true
	group[k] = last
	return true
}

// end notes that the operation is over. After a success there is nothing to
// remember.
func (p *pending) end(k key, failed bool, now time.Time) {
	group := p.byVolume[k.volume]
	if !failed {
		delete(group, k)
		if len(group) == 0 {
			delete(p.byVolume, k.volume)
		}
		return
	}
	last := group[k]
	last.running = false
	last.wait = p.timing.after(last.wait)
	last.until = now.Add(last.wait)
}

// busy reports whether an operation runs that is in the way of one on k.
func (p *pending) busy(k key) bool {
	for other, a := range p.byVolume[k.volume] {
		if a.running && k.conflicts(other) {
			return true
		}
	}
	return false
}
