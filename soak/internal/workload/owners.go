package workload

import "slices"

// othersShare is the share of the owned pods of a namespace that are not of the owner that makes most.
const othersShare = 0.25

// owner decides what made a pod. Each namespace has two owners of one name, of which the first makes most of the pods. A daemon
// tells the Jobs of a CronJob by when they were due, so where its wall clock steps there are none.
func (p Plan) owner(pod Pod) Owner {
	r := p.stream("owner", uint64(pod.Index))
	owned, other := chance(r, p.workload.Owned), chance(r, othersShare)
	stepped := slices.ContainsFunc(p.workload.Faults, func(f Fault) bool { return f.Kind == ClockStep })
	kind := "Job"
	switch {
	case !owned:
		return Owner{}
	case other:
		kind = "StatefulSet"
	case pod.Namespace == namespaces[1] && !stepped:
		kind = "CronJob"
	case pod.Namespace == namespaces[2]:
		kind = "ReplicaSet"
	}
	return Owner{Kind: kind, Name: "loop"}
}
