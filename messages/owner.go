package messages

import "github.com/katbox/katbox/internal/model/volume"

// OwnVolume tells whose a volume is, as a gateway said of the pod with this UID. The answer comes
// once a retained volume has that durably; a volume that is awake writes it with its next change.
// Front -> supervisor -> volume.
type OwnVolume struct {
	Routing
	Pod   volume.PodUID
	Owner volume.Owner
	Reply[struct{}]
}

// RetainedAs says that a volume is retained, with this record: an operation has ended, which has
// retained it or has given it another owner, outcome or hold. It comes before the operation's answer.
// Volume -> supervisor.
type RetainedAs struct {
	Record volume.Record
	// After is the last publish that the volume has begun or refused; nil if there is none. A later one
	// may be on its way: then the volume is about to be published.
	After *PublishVolume
}

// CountHoldings asks how many retained volumes there are of each namespace. Front -> supervisor.
type CountHoldings struct {
	// Version is that of the last answer; zero for none.
	Version uint64
	Reply[Holdings]
}

// Holdings answers CountHoldings.
type Holdings struct {
	// Version is another one if the volumes have changed. All is nil if they have not. It has a
	// namespace more than once if some of its volumes are awake.
	Version uint64
	All     []volume.Holding
}
