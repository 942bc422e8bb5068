package main

import (
	"github.com/katbox/katbox/actors/arrays"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/node/attach/iscsi"
	"github.com/katbox/katbox/internal/node/attach/nfs"
	"github.com/katbox/katbox/internal/node/poolnode"
)

// initiatorInterface is the record in the host's iSCSI database under which the sessions are Katbox's.
const initiatorInterface = "katbox"

// newNode connects what changes the node with the actors that decide what changes.
func (a *arrayPart) newNode() (partNode, error) {
	o := a.o.arrays
	cluster, err := o.cluster()
	if err != nil {
		return nil, err
	}
	network, err := o.network()
	if err != nil {
		return nil, err
	}
	addresses, err := o.addresses()
	if err != nil {
		return nil, err
	}
	if a.keeper == nil {
		a.keeper = poolnode.Start(poolnode.Config{
			API: cluster, Node: a.o.nodeID, Network: network, Given: addresses, Up: a.i.counted.ArrayNodeKnown, Log: a.log,
		})
	}
	initiator, err := iscsi.New(iscsi.Config{Root: o.hostRoot, Interface: initiatorInterface, IQN: a.keeper.IQN, Log: a.log})
	if err != nil {
		return nil, err
	}
	n, err := arrays.Start(arrays.Config{
		NodeName:  a.o.nodeID,
		HostRoot:  o.hostRoot,
		Table:     attach.Table,
		Look:      attach.Look,
		MountNFS:  nfs.Mount,
		Disk:      disk.Tools{Root: o.hostRoot, Log: a.log},
		Initiator: initiator,
		Staged:    a.records,
		Cluster:   cluster,
		Metrics:   a.i.counted,
		Threads:   o.threads(a.i.threads),
		Log:       a.log,
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}
