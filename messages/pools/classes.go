package pools

import (
	"time"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
)

// ClassesName is the name of the single actor that knows all classes.
const ClassesName = "classes"

// ClassSeen tells the classes what a PoolClass is. Supervisor -> classes.
type ClassSeen struct{ Object *v1alpha1.PoolClass }

// ClassGone tells the classes that there is no such PoolClass any more. Supervisor -> classes.
type ClassGone struct{ Name string }

// CountReserved asks how many volumes are being made on a pool. Pool -> classes.
type CountReserved struct {
	Pool string
	messages.Reply[int]
}

// A new claim gets the volume of a deleted one back if it asks for that with an annotation. The call for the new
// claim's volume has a task of its own, which finds the volume and asks the volume's actor for it: so the end of
// a retained volume and two claims that want it are one after the other.

// NameOfClass asks for the name of a class; empty means the default one. Task -> classes.
type NameOfClass struct {
	Class string
	messages.Reply[string]
}

// LifespanOfClass asks how long volumes of a class are kept whose claims do not say. Task -> classes.
type LifespanOfClass struct {
	Class string
	messages.Reply[time.Duration]
}

// The parameters of a class need something of an array: a portal for iSCSI, a password for encryption, a license. What no
// request tells, the array says when it refuses a volume. The condition Suitable has both. A refused volume goes to
// another pool of the class, and so do those like it for a while, if another one takes them.

// WantsOfClass asks what a class wants of its pools. Pool -> classes.
type WantsOfClass struct {
	Class string
	messages.Reply[ClassWants]
}

// ClassWants is what a class wants of its pools. It can be compared.
type ClassWants struct {
	// Strict: limits have to hold against every pod.
	Strict bool
	// Needs are those of a volume with a file system.
	Needs pools.Needs
}
