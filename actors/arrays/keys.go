package arrays

import "github.com/katbox/katbox/actors/persistent"

// What has an actor. The kit finds the actor of a request by an ID, which is the kind and a name here, such
// as volume/pvc-1.
const (
	kindVolume = persistent.KindVolume
	kindStats  = persistent.KindStats
	// kindSession is the session to a target.
	kindSession = "session"
	// kindReport writes the status of an attachment.
	kindReport = "report"
	// kindLeftovers looks for volumes that no call will ever take off the node. There is one.
	kindLeftovers = "leftovers"
)
