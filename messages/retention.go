package messages

import "github.com/katbox/katbox/internal/volume"

// Retain hands over the record of a volume that went to sleep.
// Supervisor -> retention.
type Retain struct {
	Record volume.Record
	// Failed says why its deletion, which was tried last, did not succeed; nil when
	// none was. Tries is how often in a row.
	Failed error
	Tries  int
}

// Wake asks for a sleeping volume's record, which then is the asker's.
// Supervisor -> retention; answered by Woken.
type Wake struct {
	ID volume.ID
	// Seq tells this question from an earlier one about the same volume.
	Seq uint64
}

// Woken answers Wake. Retention -> supervisor.
type Woken struct {
	ID volume.ID
	// Seq is the question's.
	Seq uint64
	// Record is nil when no such volume is asleep.
	Record *volume.Record
}

// Evict hands back the record of a volume whose time is over, or which has to
// go early, to be deleted. Retention -> supervisor; answered by EvictionOver.
type Evict struct {
	Record volume.Record
	// Reason tells whether its lifespan is over or disk pressure took time off.
	Reason volume.Reason
	// Factor is the pressure factor that it went by, 1 if its lifespan is over.
	Factor float64
	// Tries is how often its deletion has failed before.
	Tries int
}

// EvictionOver says that an eviction has come to its end. Supervisor -> retention.
type EvictionOver struct {
	ID volume.ID
	// Deleted tells whether the volume is: it could not be, or it was needed.
	Deleted bool
}

// FindUnknown asks which of the places, where there may be data directories, belong to
// no volume that is known. Scan for orphans -> supervisor -> retention.
type FindUnknown struct {
	Places []volume.Place
	Reply[[]volume.Place]
}

func (*Retain) toRetention()       {}
func (*Wake) toRetention()         {}
func (*EvictionOver) toRetention() {}
func (*FindUnknown) toRetention()  {}
func (*FindUnknown) toSupervisor() {}
func (*Woken) toSupervisor()       {}
func (*Evict) toSupervisor()       {}
