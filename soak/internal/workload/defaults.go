package workload

import "time"

// defaults is what a file says that leaves everything out: a modest churn
// without faults. A fault's times are 1, see parse.
func defaults() Workload {
	return Workload{
		Pods:     300,
		Parallel: 8,
		Arrival:  Arrival{Burst: 1},
		Length:   Length{Distribution: Exponential, Mean: Duration(time.Second)},
		Volumes:  Volumes{Min: 1, Max: 2, Pool: 10},
		Contents: Contents{Files: 4, Bytes: 4 << 10},
		Driver: Driver{
			Lifespan:      Duration(20 * time.Second),
			Headroom:      0.1,
			PruneInterval: Duration(time.Second),
			OrphanGrace:   Duration(10 * time.Second),
		},
		Disk:    Disk{Kind: directory, Size: 1 << 30},
		Timeout: Duration(15 * time.Minute),
	}
}
