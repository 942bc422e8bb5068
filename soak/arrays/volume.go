package main

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// The kinds of volumes: how pods reach them, and what they are.
const (
	nfs       = "nfs"
	sharedNFS = "nfs-shared"
	ext4      = "ext4"
	xfs       = "xfs"
	block     = "block"
)

var kinds = []string{nfs, sharedNFS, ext4, xfs, block}

func isKind(name string) bool { return slices.Contains(kinds, name) }

// gib is the size of a new volume, and how much one grows. The array counts in it.
const gib = 1 << 30

// volume is one of the run's volumes.
type volume struct {
	// name is what the provisioner calls it, id what Katbox does.
	name, id string
	kind     string
	// shared: pods on several nodes may write to it.
	shared bool
	// size is what was asked for, in bytes.
	size    int64
	content workload.Content
	// story judges it. calls are those that the kubelet made for its last pod.
	story *story.Story
	calls *history.Volume
}

func newVolume(name, kind string, content workload.Content) *volume {
	v := &volume{name: name, kind: kind, size: gib, content: content, story: story.New(0)}
	if kind == sharedNFS {
		v.kind, v.shared = nfs, true
	}
	return v
}

// sized is an event that says how large it is, or becomes.
func sized(what story.Verb, bytes int64) story.Event {
	return story.Event{What: what, N: int(bytes)}
}

func (v *volume) capability() *csi.VolumeCapability {
	c := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
	switch v.kind {
	case block:
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	case ext4, xfs:
		c.GetMount().FsType = v.kind
	}
	if v.shared {
		c.AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	return c
}
