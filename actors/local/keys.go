package local

import (
	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/persistent"
)

// What has an actor. The kit finds the actor of a request by an ID, which is the kind and a name here, such as
// volume/pvc-1. Names are unique in a cluster, whatever pool a volume is in.
const (
	kindVolume   = persistent.KindVolume
	kindSnapshot = "snapshot"
)

// keeperName is the name of the actor that knows the pools.
const keeperName = "keeper"

// problemf makes an error of a kind.
func problemf(kind error, format string, about ...any) error {
	return actors.Problemf(kind, format, about...)
}

// because makes an error of a kind that has a cause.
func because(kind, cause error, format string, about ...any) error {
	return actors.Because(kind, cause, format, about...)
}
