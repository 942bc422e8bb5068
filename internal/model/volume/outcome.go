package volume

import "fmt"

// Outcome is how a volume's pod ended. Its number is part of the record format.
type Outcome uint8

const (
	// OutcomeUnknown: the end of the pod was never seen.
	OutcomeUnknown Outcome = iota
	// Succeeded: all its containers ended by themselves with exit code 0, before the pod was stopped.
	Succeeded
	// Failed: at least one container failed, or the pod was evicted or took too long.
	Failed
	// Stopped: the pod had been told to go, and did so before it had succeeded or failed.
	Stopped
)

// String returns the outcome in one word.
func (o Outcome) String() string {
	if o.Valid() {
		return [...]string{"Unknown", "Succeeded", "Failed", "Stopped"}[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Valid reports whether o is one of the outcomes.
func (o Outcome) Valid() bool { return o <= Stopped }

// ParseOutcome returns the outcome with that word.
func ParseOutcome(word string) (Outcome, bool) {
	for o := OutcomeUnknown; o.Valid(); o++ {
		if o.String() == word {
			return o, true
		}
	}
	return OutcomeUnknown, false
}
