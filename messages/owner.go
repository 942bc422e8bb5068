package messages

import "github.com/katbox/katbox/internal/model/volume"

// OwnVolume names the owner of a volume, as a gateway said of the pod with this UID. The answer comes
// once a retained volume has that durably; a volume that is awake writes it with its next change.
// Front -> supervisor -> volume.
type OwnVolume struct {
	Routing
	Pod   volume.PodUID
	Owner volume.Owner
	Reply[struct{}]
}

// CountHoldings asks how many retained volumes there are of each namespace. Front -> supervisor.
type CountHoldings struct {
	// Version is that of the last answer; zero for none.
	Version uint64
	Reply[Holdings]
}

// Holdings answers CountHoldings.
type Holdings struct {
	// Version is another one if the volumes have changed. All is nil if they have not.
	Version uint64
	All     []volume.Holding
}
