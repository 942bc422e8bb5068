package main

import (
	"time"

	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// trial is the workload of a short run in which everything can be seen that a
// bug needs to be seen.
func trial() workload.Workload {
	return workload.Workload{
		Pods: 24, Parallel: 24,
		Arrival:  workload.Arrival{Burst: 1},
		Length:   workload.Length{Distribution: workload.Constant, Mean: workload.Duration(700 * time.Millisecond)},
		Volumes:  workload.Volumes{Min: 1, Max: 2, Pool: 1},
		Contents: workload.Contents{Files: 2, Bytes: 1024},
		Driver: workload.Driver{
			Lifespan: workload.Duration(5 * time.Second), OrphanGrace: workload.Duration(time.Second),
			PruneInterval: workload.Duration(200 * time.Millisecond),
		},
		Disk:    workload.Disk{Kind: "tmpfs", Size: 64 << 20, Inodes: 20000},
		Timeout: workload.Duration(10 * time.Minute),
	}
}

func fault(kind workload.FaultKind, times int, length time.Duration) workload.Fault {
	return workload.Fault{Kind: kind, Times: times, For: workload.Duration(length)}
}

// need is what a bug needs of a run to be seen.
type need struct {
	change func(*workload.Workload)
	// also is what such a driver breaks besides, and cannot but break.
	also []history.Promise
}

// waves lets pods come and go for some seconds, so that at all times some are
// alive and some volumes are retained for a while.
func waves(w *workload.Workload) {
	w.Pods, w.Parallel = 48, 8
	w.Length.Distribution = workload.Uniform
}

// faulty adds a fault to the waves.
func faulty(kind workload.FaultKind, times int, length time.Duration) need {
	return need{change: func(w *workload.Workload) {
		waves(w)
		w.Faults = []workload.Fault{fault(kind, times, length)}
	}}
}

// openFiles lets a process have the files of what is retained open while the disk is full.
func openFiles(w *workload.Workload) {
	w.Pods, w.Parallel = 40, 8
	w.Contents.Files, w.Contents.Bytes = 8, 256<<10
	w.Driver.Headroom = 0.1
	w.Driver.Lifespan = workload.Duration(20 * time.Second)
	w.Disk.Size = 128 << 20
	w.Faults = []workload.Fault{fault(workload.OpenFiles, 1, 5*time.Second)}
}

// read lets people read what the waves leave, in some of which there is a certain
// content.
func read(change func(*workload.Workload)) need {
	return need{change: func(w *workload.Workload) {
		waves(w)
		w.Reading.Readers = 3
		change(w)
	}}
}

// decided lets people decide about a part of what the waves leave.
func decided(change func(*workload.Workload)) need {
	return read(func(w *workload.Workload) {
		w.Reading.Removed, w.Reading.Pinned, w.Reading.Released = 0.1, 0.3, 0.3
		w.Driver.ReleaseGrace = workload.Duration(200 * time.Millisecond)
		change(w)
	})
}

// attached lets other pods attach a part of what the waves leave, for longer than the grace
// of the release that comes meanwhile.
func attached() need {
	return read(func(w *workload.Workload) {
		w.Reading.Attached, w.Driver.ReleaseGrace = 0.5, workload.Duration(700*time.Millisecond)
		w.Driver.Lifespan = workload.Duration(8 * time.Second)
	})
}

// hoarded lets pods attach more of what the waves leave than may be.
func hoarded() need {
	n := attached()
	return need{change: func(w *workload.Workload) {
		n.change(w)
		w.Contents.Files, w.Contents.Bytes, w.Reading.Attached = 4, 128<<10, 0.9
		w.Driver.MaxPinned = 0.005
	}}
}

// owned lets owners make the pods, fast enough that most of what they leave goes because enough others stay, and slowly enough that the
// driver knows by then how they have ended.
func owned(w *workload.Workload) {
	w.Pods, w.Parallel, w.Owned = 60, 6, 1
	w.Length = workload.Length{Distribution: workload.Uniform, Mean: workload.Duration(1500 * time.Millisecond)}
	w.Driver.MaxPerOwner = workload.PerOwner{First: 1, Last: 3}
	w.Driver.Lifespan, w.Driver.ReleaseGrace = workload.Duration(15*time.Second), workload.Duration(200*time.Millisecond)
	w.Failed, w.Volumes.OnFailure = 0.5, 0.01
}

// hold lets people hold streams of volumes that go well before the end of the run:
// five seconds after that they read on.
func hold(w *workload.Workload) {
	w.Pods, w.Parallel = 32, 4
	w.Contents.Sparse, w.Reading.Readers = 1, 6
	w.Length.Mean = workload.Duration(2 * time.Second)
}

// needs has the bugs that do not show in the trial as it is.
var needs = map[fakedriver.Bug]need{
	fakedriver.ForgetsRetained:   faulty(workload.DaemonKill, 2, 50*time.Millisecond),
	fakedriver.RestartsDeadlines: faulty(workload.DaemonKill, 2, 50*time.Millisecond),
	fakedriver.EntersMounts:      faulty(workload.ForeignMount, 4, 2*time.Second),
	fakedriver.FollowsVolumeLink: faulty(workload.VolumeSymlink, 4, 0),
	fakedriver.KeepsOrphans:      faulty(workload.PodRemoved, 8, 0),
	fakedriver.TrustsDirectories: faulty(workload.PodRemoved, 12, 0),
	fakedriver.RefusesWhenFull:   faulty(workload.DiskFull, 2, 2*time.Second),
	fakedriver.RefusesRepeats:    {change: func(w *workload.Workload) { w.Pods, w.Calls.Doubled = 12, 1 }},
	fakedriver.RefusesUnknown:    {change: func(w *workload.Workload) { w.Pods, w.Calls.Doubled = 12, 1 }},
	fakedriver.FollowsLinks:      {change: func(w *workload.Workload) { w.Pods, w.Contents.Links = 6, 1 }},
	fakedriver.TakesAnyID:        {change: func(w *workload.Workload) { w.Pods, w.Calls.Bad = 12, 10 }},
	fakedriver.AnswersVaguely:    {change: func(w *workload.Workload) { w.Pods, w.Calls.Bad = 12, 2 }},
	fakedriver.IgnoresUnknown:    {change: func(w *workload.Workload) { w.Pods, w.Calls.Bad = 12, 10 }},
	fakedriver.MountsWritable:    {change: func(w *workload.Workload) { w.Volumes.ReadOnly = 1 }},
	fakedriver.TrustsWallClock: {change: func(w *workload.Workload) {
		w.Faults = []workload.Fault{{Kind: workload.ClockStep, Times: 1, Step: workload.Duration(time.Hour)}}
	}},
	fakedriver.ShowsOldClock: read(func(w *workload.Workload) {
		w.Faults = []workload.Fault{{Kind: workload.ClockStep, Times: 1, Step: workload.Duration(time.Hour)}}
	}),
	// Nobody finds the data where it was published, so that is lost as well.
	fakedriver.Unmounts: {also: []history.Promise{history.PublishedData}, change: func(w *workload.Workload) {
		waves(w)
		w.Length.Mean = workload.Duration(1500 * time.Millisecond)
		w.Faults = []workload.Fault{fault(workload.DaemonKill, 3, 50*time.Millisecond)}
	}},
	// The loss has to come well before the end of the containers.
	fakedriver.LosesFiles: {change: func(w *workload.Workload) { w.Pods, w.Length.Mean = 12, workload.Duration(3*time.Second) }},
	// The driver never comes back to where it has moved the data.
	fakedriver.MovesData: {also: []history.Promise{history.NoLeak}, change: func(w *workload.Workload) {
		w.Pods, w.Length.Mean = 12, workload.Duration(3*time.Second)
	}},
	// It takes some seconds until it is certain that nothing is evicted, and
	// nothing may expire meanwhile.
	fakedriver.NeverEvicts: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 4, 4
		w.Faults = []workload.Fault{fault(workload.DiskFull, 1, 12*time.Second)}
		w.Driver.Headroom = 0.1
		w.Driver.Lifespan = workload.Duration(20 * time.Second)
	}},
	// It is certain before the lifespan is over, though that is short.
	fakedriver.NeverEvictsShort: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 4, 4
		w.Faults = []workload.Fault{fault(workload.DiskFull, 1, 8*time.Second)}
		w.Driver.Headroom = 0.1
	}},
	// The disk is never full, so that most may stay.
	fakedriver.EvictsAll: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 40, 4
		w.Disk.Size = 32 << 20
		w.Contents.Files, w.Contents.Bytes = 8, 256<<10
		w.Driver.Headroom = 0.9
		w.Driver.Lifespan = workload.Duration(8 * time.Second)
	}},
	// A process has the files open, of which each volume has enough for the driver to see that they make no room.
	fakedriver.EvictsInVain: {change: openFiles},
	// Mounts are looked at once in a second.
	fakedriver.MountsTwice: {change: func(w *workload.Workload) {
		w.Pods, w.Calls.Doubled, w.Length.Mean = 12, 1, workload.Duration(3*time.Second)
	}},
	// What may come of other reasons is less than what so many publishes leave.
	fakedriver.LeaksMemory:  {change: func(w *workload.Workload) { waves(w); w.Calls.Doubled = 1 }},
	fakedriver.LeaksThreads: {change: func(w *workload.Workload) { waves(w); w.Calls.Doubled = 1 }},
	// Here and there a volume has to go, while there are older ones by more than
	// a second.
	fakedriver.EvictsNewest: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 40, 4
		w.Disk.Size = 32 << 20
		w.Contents.Files, w.Contents.Bytes = 8, 256<<10
		w.Driver.Headroom = 0.9
		w.Driver.Lifespan = workload.Duration(8 * time.Second)
	}},
	// Where an older volume of another pod is due, that of a failed one goes before it is due itself.
	fakedriver.EvictsFailures: {also: []history.Promise{history.Durable}, change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 40, 4
		w.Disk.Size = 32 << 20
		w.Contents.Files, w.Contents.Bytes = 8, 256<<10
		w.Driver.Headroom = 0.9
		w.Driver.Lifespan = workload.Duration(12 * time.Second)
		w.Driver.ReleaseGrace = workload.Duration(200 * time.Millisecond)
		w.Failed, w.Volumes.OnFailure = 0.5, 0.01
	}},
	fakedriver.ListsPublished: read(func(*workload.Workload) {}),
	fakedriver.ListsOthers:    read(func(*workload.Workload) {}),
	fakedriver.ListsTwice:     read(func(*workload.Workload) {}),
	fakedriver.ListsForgets:   read(func(*workload.Workload) {}),
	fakedriver.ListsStale:     read(func(*workload.Workload) {}),
	fakedriver.ReadsLinks:     read(func(w *workload.Workload) { w.Contents.Links = 0.5 }),
	fakedriver.ReadsMounts: read(func(w *workload.Workload) {
		w.Faults = []workload.Fault{fault(workload.ForeignMount, 8, 2*time.Second)}
	}),
	fakedriver.ReadsAnother: read(func(*workload.Workload) {}),
	fakedriver.ReadsBeside:  read(func(*workload.Workload) {}),
	fakedriver.ReadsHalf:    read(func(*workload.Workload) {}),
	fakedriver.ReadsOn:      read(hold),
	fakedriver.ReadsAlong: read(func(w *workload.Workload) {
		w.Pods, w.Parallel = 24, 12
		w.Contents.Sparse, w.Again, w.Reading.Readers = 1, 1, 24
		// After five seconds a reader reads on, before the second life of the volume is over.
		w.Driver.Lifespan = workload.Duration(20 * time.Second)
	}),
	// All pods come again at about the same time, and for long enough to be visited.
	fakedriver.ReadsPublished: read(func(w *workload.Workload) {
		w.Pods, w.Parallel = 16, 16
		w.Again, w.Reading.Readers = 1, 8
		w.Length.Distribution, w.Length.Mean = workload.Constant, workload.Duration(6*time.Second)
		w.Driver.Lifespan = workload.Duration(12 * time.Second)
	}),
	fakedriver.LosesAgain:      read(func(w *workload.Workload) { w.Again = 0.5 }),
	fakedriver.ReadsWithTrace:  read(func(*workload.Workload) {}),
	fakedriver.TarsLess:        read(func(*workload.Workload) {}),
	fakedriver.ReadingProlongs: read(func(*workload.Workload) {}),
	// A call may take 10 s. The first pods end long before the last.
	fakedriver.ReadingDelays: read(func(w *workload.Workload) {
		w.Pods, w.Parallel = 12, 12
		w.Contents.Sparse = 1
		w.Driver.Lifespan = workload.Duration(12 * time.Second)
		w.Length.Mean = workload.Duration(4 * time.Second)
	}),
	fakedriver.RemovesAnother: read(func(w *workload.Workload) { w.Reading.Removed = 0.3 }),
	fakedriver.RemovesNothing: read(func(w *workload.Workload) { w.Reading.Removed = 0.3 }),
	fakedriver.PinsNothing:    decided(func(*workload.Workload) {}),
	fakedriver.ForgetsPins: decided(func(w *workload.Workload) {
		w.Faults = []workload.Fault{fault(workload.DaemonKill, 3, 50*time.Millisecond)}
	}),
	// What is let go has to go well before the end of its lifespan.
	fakedriver.ReleasesNothing: decided(func(w *workload.Workload) { w.Driver.Lifespan = workload.Duration(12 * time.Second) }),
	fakedriver.ShortensFailed: {change: func(w *workload.Workload) {
		waves(w)
		w.Failed, w.Volumes.OnFailure, w.Driver.ReleaseGrace = 0.5, 0.5, workload.Duration(200*time.Millisecond)
	}},
	// The targets are busy until the deadline in the queue is past, so that nothing is left to be retained.
	fakedriver.DeletesBusy: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 12, 4
		w.Faults = []workload.Fault{fault(workload.BusyTarget, 4, 9*time.Second)}
	}},
	// The second life of all pods is longer than the lifespan.
	fakedriver.DeletesAgain: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel, w.Again = 8, 8, 1
		w.Length.Mean = workload.Duration(8 * time.Second)
	}},
	fakedriver.DeletesFailed: {change: func(w *workload.Workload) {
		waves(w)
		w.Again = 1
		w.Faults = []workload.Fault{fault(workload.DiskFull, 4, 2*time.Second)}
	}},
	fakedriver.FollowsID: {change: func(w *workload.Workload) { w.Pods, w.Calls.Bad = 12, 10 }},
	// What is retained is deleted, too, and no call with bad input should be taken.
	fakedriver.TakesDot: {also: []history.Promise{history.Durable, history.BadInput}, change: func(w *workload.Workload) {
		waves(w)
		w.Calls.Bad, w.Length.Mean = 10, workload.Duration(3*time.Second)
	}},
	fakedriver.AttachesWritable: attached(),
	fakedriver.DeletesAttached:  attached(),
	fakedriver.HurriesAttached:  attached(),
	fakedriver.BuriesLookers:    attached(),
	fakedriver.HoardsAttached:   hoarded(),
	fakedriver.BuriesNothing:    decided(func(*workload.Workload) {}),
	fakedriver.BuriesTwice:      decided(func(*workload.Workload) {}),
	fakedriver.BuriesExpired:    decided(func(*workload.Workload) {}),
	fakedriver.BuriesOthers:     decided(func(*workload.Workload) {}),
	fakedriver.KeepsOneLess:     {change: owned},
	fakedriver.ForgetsFirst:     {change: owned},
	fakedriver.CountsTogether:   {change: owned},
	fakedriver.KeepsAllOfOwners: {change: owned},
	fakedriver.TakesAnothers:    {change: owned},
	fakedriver.BuriesUnowned:    read(owned),
	// As for LocksAll, but that only unpublishes wait.
	fakedriver.LocksUnpublishes: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 16, 4
		w.Faults = []workload.Fault{fault(workload.BusyTarget, 2, 18*time.Second)}
	}},
	// A call may take 10 s. The first of the two targets is that of a pod in the
	// first half, so that there are others to wait for it.
	fakedriver.LocksAll: {change: func(w *workload.Workload) {
		w.Pods, w.Parallel = 16, 4
		w.Faults = []workload.Fault{fault(workload.BusyTarget, 2, 18*time.Second)}
	}},
}
