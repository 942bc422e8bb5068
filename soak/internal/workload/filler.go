package workload

import (
	"fmt"
	"hash/fnv"
)

// Filler is the pod that a fault of the disk needs, beyond the pods of the plan:
// it has one volume, and whoever plays it fills that.
func (p Plan) Filler(f PlannedFault) Pod {
	kind := fnv.New64a()
	kind.Write([]byte(f.Kind)) // it never fails
	r := p.stream("filler", kind.Sum64(), uint64(f.Number))
	const name = "data-0"
	uid := newUID(r)
	return Pod{
		Index: p.workload.Pods,
		UID:   uid,
		Name:  fmt.Sprintf("filler-%s-%d", f.Kind, f.Number),

		Namespace: p.namespace("filler namespace", kind.Sum64(), uint64(f.Number)),
		Volumes: []Volume{{
			Name: name, ID: volumeID(name, uid),
			Content: Content{Marker: fmt.Sprintf("%016x", r.Uint64()), Seed: r.Uint64()},
		}},
	}
}
