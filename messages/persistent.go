package messages

import (
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// StageVolume orders a volume of an array to be made ready on the node. Front -> supervisor -> volume.
type StageVolume struct {
	Routing
	Staging pools.Staging
	Reply[struct{}]
}

// UnstageVolume orders all to be undone that StageVolume has made. Front -> supervisor -> volume.
type UnstageVolume struct {
	Routing
	// Volume is the volume's ID, Path the path at which it is staged.
	Volume, Path string
	Reply[struct{}]
}

// PublishStaged orders a staged volume to be mounted where a pod wants it. Front -> supervisor -> volume.
type PublishStaged struct {
	Routing
	Publication pools.NodePublication
	Reply[struct{}]
}

// UnpublishStaged orders a volume to be unmounted from a pod's target. Front -> supervisor -> volume.
type UnpublishStaged struct {
	Routing
	Volume, Target string
	Reply[struct{}]
}

// ExpandStaged orders a staged volume to become as large as it is on its array. The answer is its size in
// bytes. Front -> supervisor -> volume.
type ExpandStaged struct {
	Routing
	Expansion pools.NodeExpansion
	Reply[int64]
}

// StagedStats asks how full a volume is that is mounted at Path. Front -> supervisor -> stats of the volume.
type StagedStats struct {
	Routing
	Volume, Path string
	Reply[volume.Stats]
}

// UseSession asks for a session to an iSCSI target that carries I/O, which is kept for the volume until
// ReleaseSession. The same volume asks again without harm. Task -> supervisor -> session.
type UseSession struct {
	Routing
	// Attachment says which target, where, and with which Secret.
	Attachment pools.Attachment
	Reply[struct{}]
}

// ReleaseSession says that a volume has no device of the target any more. The answer comes once the node
// is logged out, if this was the last volume there. Task -> supervisor -> session.
type ReleaseSession struct {
	Routing
	Target, Volume string
	Reply[struct{}]
}

// ClearDetached orders what a stage has left of a volume to be removed from the node, if nothing of it is mounted
// and it is not attached to the node any more. Leftovers -> supervisor -> volume.
type ClearDetached struct {
	Routing
	Reply[struct{}]
}

// ReportSession orders to write into a PoolAttachment whether its session carries I/O. It is repeated until that
// has succeeded, or another report has taken its place. Task, session -> supervisor -> report.
type ReportSession struct {
	Routing
	Attachment string
	Active     bool
	Reply[struct{}]
}
