package workload

import (
	"fmt"
	"hash/fnv"
)

// Amok is the pod that a fault of the disk needs, beyond the pods of the plan:
// it has one volume, and whoever plays it fills that.
func (p Plan) Amok(f PlannedFault) Pod {
	kind := fnv.New64a()
	kind.Write([]byte(f.Kind)) // it never fails
	r := p.stream("amok", kind.Sum64(), uint64(f.Number))
	const name = "data-0"
	uid := newUID(r)
	return Pod{
		Index: p.workload.Pods,
		UID:   uid,
		Name:  fmt.Sprintf("amok-%s-%d", f.Kind, f.Number),

		Namespace: p.namespace("amok namespace", kind.Sum64(), uint64(f.Number)),
		Volumes: []Volume{{
			Name: name, ID: volumeID(name, uid),
			Content: Content{Marker: fmt.Sprintf("%016x", r.Uint64()), Seed: r.Uint64()},
		}},
	}
}
