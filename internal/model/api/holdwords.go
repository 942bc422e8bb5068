package api

import "time"

// Hold is what a person decided about how long a retained volume is kept.
type Hold struct {
	// Kind is Pinned for a volume that is kept at least until then, and Released for one that goes then
	// or earlier.
	Kind  string    `json:"kind"`
	Until time.Time `json:"until"`
	// By is who decided, Why the reason that was given.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Keep is the body of a PATCH of a volume.
type Keep struct {
	// KeepUntil is until when the volume is kept at least. Null takes back what was decided before: a
	// pin or a release.
	KeepUntil *time.Time `json:"keepUntil"`
	// Reason is why. A pin needs one.
	Reason string `json:"reason,omitempty"`
}

// Terms are what a volume was promised when it was first published. Durations are text: 12h, 3d.
type Terms struct {
	// Lifespan is how long the volume is kept without pressure, LifespanSucceeded how long after its pod
	// has Succeeded.
	Lifespan          string `json:"lifespan,omitempty"`
	LifespanSucceeded string `json:"lifespanSucceeded,omitempty"`
	// Retain is Always, OnFailure or Never.
	Retain string `json:"retain,omitempty"`
	// LimitBytes and LimitInodes are how much the volume may take; 0 is no limit.
	LimitBytes  int64 `json:"limitBytes,omitempty"`
	LimitInodes int64 `json:"limitInodes,omitempty"`
	// LimitNotEnforced: nothing keeps the volume from taking more.
	LimitNotEnforced bool `json:"limitNotEnforced,omitempty"`
}

// GoneVolume is what a node remembers of a volume that it deleted.
type GoneVolume struct {
	// Volume is what was known of it last. Its Phase is Gone, and it has no ExpiresAt.
	Volume
	// Number orders what a node remembers: a later one has a higher number.
	Number uint64 `json:"number"`
	// GoneAt is when the volume was deleted.
	GoneAt time.Time `json:"goneAt"`
	// Reason is why: expired, bytes, inodes, namespace, released or purged.
	Reason string `json:"reason"`
	// Promised is how long it was to be kept without pressure, Kept how long it was: 12h, 3d.
	Promised string `json:"promised"`
	Kept     string `json:"kept"`
	// Early: it went before the end of what it was promised, though no person wanted that. Factor was the
	// pressure factor then, FreeBytes and FreeInodes what was free.
	Early      bool    `json:"early,omitempty"`
	Factor     float64 `json:"factor,omitempty"`
	FreeBytes  int64   `json:"freeBytes,omitempty"`
	FreeInodes int64   `json:"freeInodes,omitempty"`
	// By is who ended its lifespan, Why the reason that was given.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// PhaseGone is the Phase of a GoneVolume.
const PhaseGone = "Gone"

// GoneList is a page of volumes that are gone, the last one first.
type GoneList struct {
	Items []GoneVolume `json:"items"`
	// Continue asks for the next page, as the parameter "before"; it is 0 on the last one. A page may be
	// shorter than its limit, or empty, and not be the last.
	Continue uint64 `json:"continue,omitempty"`
}
