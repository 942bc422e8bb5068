package pools

import "time"

// End is why a retained volume was deleted for good.
type End string

// The reasons.
const (
	// Expired: its lifespan is over.
	Expired End = "Expired"
	// Evicted: it went before, because room was needed.
	Evicted End = "Evicted"
	// Erased: a person has deleted its resource.
	Erased End = "Erased"
	// Vanished: it is not on its array any more.
	Vanished End = "Vanished"
	// Restored: a claim has got it back, so that it is retained no more.
	Restored End = "Restored"
)

// Ends are all of them.
var Ends = []End{Expired, Evicted, Erased, Vanished, Restored}

// ClaimOf is a claim that there is, as the API server has it.
type ClaimOf struct {
	Claim
	// UID is the claim's, NamespaceUID that of its namespace.
	UID, NamespaceUID string
	// Lifespan is how long it wants its data to be kept; negative where it does not say.
	Lifespan time.Duration
}

// Latest is the restore annotation's word for what was retained last.
const Latest = "latest"
