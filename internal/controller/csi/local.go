package csi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// reached says how a volume is reached, where that follows from what is asked for, and which file system it gets.
func (d *Driver) reached(asked pools.Protocol, u use) (p pools.Protocol, fsType string, err error) {
	if d.cfg.Kind == pools.KindLocal {
		fsType, err = onNode(capabilitiesField, u)
		return pools.Local, fsType, err
	}
	return protocolOf(capabilitiesField, asked, u)
}

// onNode returns the file system of a volume on a node; empty where nothing is said. Only volumes that are images have
// one of their own.
func onNode(field string, u use) (fsType string, err error) {
	switch {
	case u.nodes:
		return "", volume.Invalid(field+".access_mode", "is for pods on several nodes, and the volume is on one node's disk: "+
			"give ReadWriteOnce or ReadWriteOncePod")
	case u.block, u.fsType == "":
		return "", nil
	case !slices.Contains(fileSystems, u.fsType):
		return "", volume.Invalid(field, fmt.Sprintf("wants the file system %.100q: give %s, or nothing", u.fsType,
			strings.Join(fileSystems, " or ")))
	}
	return u.fsType, nil
}

// near returns the pools of the nodes that a volume may be on: those of each topology, the preferred ones first. nil
// means that any will do.
func near(wanted *csi.TopologyRequirement) (all [][]string, err error) {
	if len(wanted.GetRequisite())+len(wanted.GetPreferred()) == 0 {
		return nil, nil
	}
	for _, topology := range slices.Concat(wanted.GetPreferred(), wanted.GetRequisite()) {
		here := segment(topology)
		if len(here) > 0 && !slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, here) }) {
			all = append(all, here)
		}
	}
	if len(all) == 0 {
		// The scheduler chooses another node then.
		return nil, fmt.Errorf("accessibility_requirements: none of the nodes that are asked for has a pool: %w", volume.ErrNoSpace)
	}
	return all, nil
}

// segment returns the UUIDs of the pools that a topology names. Other drivers' keys say nothing here.
func segment(t *csi.Topology) (uuids []string) {
	for _, key := range slices.Sorted(maps.Keys(t.GetSegments())) {
		if uuid, ok := pools.PoolOfKey(key); ok && t.GetSegments()[key] == pools.TopologyValue {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}
