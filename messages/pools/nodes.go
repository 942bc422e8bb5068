package pools

import (
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/messages"
)

type (
	// NodePools tells which pools a node has. Front -> supervisor.
	NodePools struct {
		Node, Version string
		On            local.Pools
		All           []local.Pool
	}
	// NodeAway tells that the connection of a node has ended. Front -> supervisor.
	NodeAway struct {
		Node string
		On   local.Pools
	}
	// FindDisk asks where the disk of a pool is. Task -> supervisor.
	FindDisk struct {
		UUID string
		// Last is the node that had it, as far as the Pool says.
		Last string
		messages.Reply[DiskAt]
	}
	// ProbePool lets a pool on a node be asked how it is. Supervisor -> pool.
	ProbePool struct {
		messages.Routing
		// Soon: not at once, but sooner than usual.
		Soon bool
	}
)

// DiskAt is a disk on a node that is connected.
type DiskAt struct {
	Node, Version, UUID string
	On                  local.Pools
}

// The Pools of nodes' disks are made when a node tells of a disk for the first time. One that a person deletes is
// made anew, if a node still has the disk.

type (
	// WantedPool asks what is to be done for the Pool of a disk. Task -> supervisor.
	WantedPool struct {
		UUID string
		messages.Reply[PoolWork]
	}
	// StaleLabels asks which topology labels of a node are those of disks that other nodes have. Task -> supervisor.
	StaleLabels struct {
		Node string
		messages.Reply[[]string]
	}
)

// PoolWork is what is to be done for the Pool of a disk: nothing, where Class is empty.
type PoolWork struct {
	Node  string
	Disk  local.Pool
	Class string
	// Pool is the Pool that there is, which gets the class; empty where one is to be made.
	Pool string
}
