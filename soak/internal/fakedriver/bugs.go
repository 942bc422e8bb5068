package fakedriver

import (
	"slices"

	"github.com/katbox/katbox/soak/internal/history"
)

// Bug is the way in which a driver breaks a promise; none is an honest one.
type Bug string

// The bugs, each with what it needs to show, if anything.
const (
	LosesFiles        Bug = "loses files of a published volume"
	MovesData         Bug = "moves the data of a published volume away"
	Unmounts          Bug = "unmounts published volumes when it starts again" // a kill
	ForgetsRetained   Bug = "forgets retained volumes when it is killed"      // a kill
	RestartsDeadlines Bug = "restarts deadlines when it starts"               // a kill
	DeletesEarly      Bug = "deletes early"
	KeepsTooLong      Bug = "keeps too long"
	DeletesHalf       Bug = "deletes by halves"
	EvictsNewest      Bug = "evicts the newest first"                          // pressure
	EvictsFailures    Bug = "evicts what failed pods left first"               // pressure, pods that fail
	LiesOfFailure     Bug = "says that a publish failed after it has mounted"  // no doubled calls, whose mounts cannot be told apart
	RefusesRepeats    Bug = "refuses a repeated publish once"                  // doubled calls
	RefusesUnknown    Bug = "refuses to unpublish twice at first"              // doubled calls
	LocksAll          Bug = "lets all wait for a busy target"                  // a busy target
	FollowsLinks      Bug = "deletes through symlinks"                         // links in a volume that lead to Config.Outside
	EntersMounts      Bug = "deletes into mounts"                              // a foreign mount from Config.Outside
	FollowsVolumeLink Bug = "deletes what a volume was replaced by"            // a volume symlink to Config.Outside
	RefusesWhenFull   Bug = "refuses to unpublish when the disk is full"       // a full disk
	NeverEvicts       Bug = "never evicts"                                     // a full disk
	NeverEvictsShort  Bug = "never evicts what it keeps for a short time only" // a full disk
	EvictsAll         Bug = "evicts all at once"                               // pressure
	EvictsInVain      Bug = "evicts what makes no room"                        // open files
	LocksUnpublishes  Bug = "lets all unpublishes wait for a busy target"      // a busy target
	MountsTwice       Bug = "mounts again when a publish is repeated"          // doubled calls
	KeepsRecords      Bug = "keeps the records of what is gone"
	LeaksMemory       Bug = "keeps a mebibyte of each publish"
	LeaksDescriptors  Bug = "keeps a descriptor of each publish"
	LeaksThreads      Bug = "keeps a thread of each publish"
	LeavesHidden      Bug = "leaves hidden directories"
	LeavesTargets     Bug = "leaves targets"
	LeavesMounts      Bug = "leaves mounts for a while"
	KeepsTrash        Bug = "keeps the trash"
	KeepsOrphans      Bug = "keeps orphans"                            // a removed pod
	TrustsDirectories Bug = "keeps what a kubelet left a directory of" // a removed pod
	TrustsWallClock   Bug = "trusts the wall clock"                    // a step of the clock
	ShowsOldClock     Bug = "shows the wall clock of then"             // a step of the clock, readers
	TakesAnyID        Bug = "takes any volume ID"                      // bad calls
	AnswersVaguely    Bug = "answers bad input vaguely"                // bad calls
	IgnoresUnknown    Bug = "ignores attributes that it does not know" // bad calls
	CostsMore         Bug = "needs more CPU with more retained volumes"
	MountsWritable    Bug = "mounts read-only volumes writable" // read-only volumes
	// Those of reading show with readers.
	ListsPublished  Bug = "lists published volumes"
	ListsOthers     Bug = "lists the volumes of other namespaces"
	ListsTwice      Bug = "repeats the end of a page"
	ListsForgets    Bug = "leaves a volume out between two pages"
	ListsStale      Bug = "lists volumes that are gone"
	ReadsLinks      Bug = "reads through symlinks" // links
	ReadsMounts     Bug = "reads what is mounted"  // a foreign mount
	ReadsAnother    Bug = "shows another volume's file"
	ReadsBeside     Bug = "reads ranges one byte beside"
	ReadsHalf       Bug = "takes the first half of a file for all of it"
	ReadsOn         Bug = "reads on when the volume is gone"             // sparse files
	ReadsAlong      Bug = "reads on when the volume is published again"  // sparse files, pods that come again
	ReadsPublished  Bug = "reads published volumes"                      // pods that come again
	LosesAgain      Bug = "begins anew when a volume is published again" // pods that come again
	ReadsWithTrace  Bug = "changes access times"
	TarsLess        Bug = "leaves a file out of a tar"
	ReadingProlongs Bug = "puts the deadline off when a volume is read"
	ReadingDelays   Bug = "lets calls wait for readers" // sparse files
	RemovesAnother  Bug = "removes another volume besides"
	RemovesNothing  Bug = "says that it removes, and does not"
	PinsNothing     Bug = "says that it pins, and does not"
	ForgetsPins     Bug = "forgets pins when it starts" // a kill
	ReleasesNothing Bug = "says that it releases, and does not"
	LimitsNothing   Bug = "says that it limits, and does not"      // tight volumes, Config.Quotas
	LimitsTooMuch   Bug = "limits to a tenth of what is asked for" // likewise
	ShortensFailed  Bug = "takes failures for successes"           // volumes that are kept on failure
	// Those of attaching show with pods that do.
	AttachesWritable Bug = "attaches volumes writable"
	DeletesAttached  Bug = "deletes volumes that are attached"
	HurriesAttached  Bug = "deletes volumes as soon as no pod has them attached"
	HoardsAttached   Bug = "attaches more than may be pinned" // little that may be
	BuriesLookers    Bug = "leaves tombstones of volumes without data"
	BuriesNothing    Bug = "leaves no tombstones"
	BuriesTwice      Bug = "leaves two tombstones"
	BuriesExpired    Bug = "remembers that all expired"
	BuriesOthers     Bug = "remembers volumes as those of another pod"
	// Those of owners show with pods that have one, and a bound.
	KeepsOneLess     Bug = "keeps one pod of an owner less than it should"
	ForgetsFirst     Bug = "lets the first pod of an owner go"
	CountsTogether   Bug = "counts an owner's successes and failures together"
	KeepsAllOfOwners Bug = "keeps all of an owner"
	TakesAnothers    Bug = "lets what another owner's pods left go instead"
	BuriesUnowned    Bug = "remembers that what was too much of an owner expired"
	// Those of the driver that Katbox carries on, with EntersMounts. It deletes after a lifespan what it
	// has once put into a queue, whatever that is by then.
	DeletesBusy   Bug = "deletes what it could not unmount"                      // a busy target, for longer than the lifespan
	DeletesAgain  Bug = "deletes at its old deadline what is published again"    // pods that come again for longer than that
	DeletesFailed Bug = "takes a failed publish back with the data"              // a full disk, pods that come again
	FollowsID     Bug = "deletes where a volume ID leads"                        // bad calls
	TakesDot      Bug = "takes a volume called dot for the whole work directory" // bad calls

	Crashes   Bug = "crashes"
	EndsBadly Bug = "ends badly"
)

var breaks = map[Bug]history.Promise{
	LosesFiles:        history.PublishedData,
	MovesData:         history.PublishedData,
	Unmounts:          history.Durable,
	ForgetsRetained:   history.Durable,
	RestartsDeadlines: history.Durable,
	DeletesEarly:      history.Durable,
	KeepsTooLong:      history.Durable,
	DeletesHalf:       history.Durable,
	EvictsNewest:      history.Durable,
	EvictsFailures:    history.KeepsFailed,
	LiesOfFailure:     history.FailedPublish,
	RefusesRepeats:    history.AnyOrder,
	RefusesUnknown:    history.AnyOrder,
	LocksAll:          history.Independent,
	FollowsLinks:      history.Contained,
	EntersMounts:      history.Contained,
	FollowsVolumeLink: history.Contained,
	RefusesWhenFull:   history.FullDisk,
	NeverEvicts:       history.FullDisk,
	NeverEvictsShort:  history.FullDisk,
	EvictsAll:         history.Durable,
	EvictsInVain:      history.MakesRoom,
	LocksUnpublishes:  history.Independent,
	MountsTwice:       history.AnyOrder,
	KeepsRecords:      history.NoLeak,
	LeaksMemory:       history.NoLeak, LeaksDescriptors: history.NoLeak, LeaksThreads: history.NoLeak,
	LeavesHidden:      history.NoLeak,
	LeavesTargets:     history.NoLeak,
	LeavesMounts:      history.NoLeak,
	KeepsTrash:        history.NoLeak,
	KeepsOrphans:      history.NoLeak,
	TrustsDirectories: history.NoLeak,
	TrustsWallClock:   history.Monotonic,
	ShowsOldClock:     history.Monotonic,
	TakesAnyID:        history.BadInput,
	AnswersVaguely:    history.BadInput,
	IgnoresUnknown:    history.BadInput,
	CostsMore:         history.FlatCost,
	MountsWritable:    history.ReadOnly,
	ListsPublished:    history.ListsTrue, ListsOthers: history.ListsTrue, ListsTwice: history.ListsTrue,
	ListsForgets: history.ListsTrue, ListsStale: history.ListsTrue,
	ReadsLinks: history.ReadsInside, ReadsMounts: history.ReadsInside,
	ReadsAnother: history.ReadsTrue, ReadsBeside: history.ReadsTrue, ReadsHalf: history.ReadsTrue,
	ReadsAlong: history.ReadsTrue, ReadsPublished: history.ReadsTrue, LosesAgain: history.Durable,
	ReadsOn: history.ReadsTrue, TarsLess: history.ReadsTrue,
	ReadsWithTrace:  history.ReadsNoTrace,
	ReadingProlongs: history.Durable,
	ReadingDelays:   history.Independent,
	RemovesAnother:  history.Removes, RemovesNothing: history.Removes,
	PinsNothing: history.Holds, ForgetsPins: history.Holds, ReleasesNothing: history.Holds,
	LimitsNothing:    history.Limits,
	LimitsTooMuch:    history.Limits,
	ShortensFailed:   history.KeepsFailed,
	AttachesWritable: history.Attached, DeletesAttached: history.Attached,
	HurriesAttached: history.Attached, BuriesLookers: history.Attached, HoardsAttached: history.Attached,
	BuriesNothing: history.Tombstones, BuriesTwice: history.Tombstones,
	BuriesExpired: history.Tombstones, BuriesOthers: history.Tombstones,
	KeepsOneLess: history.PerOwner, ForgetsFirst: history.PerOwner, CountsTogether: history.PerOwner,
	KeepsAllOfOwners: history.PerOwner, TakesAnothers: history.PerOwner, BuriesUnowned: history.Tombstones,
	DeletesBusy: history.Durable, DeletesAgain: history.PublishedData, DeletesFailed: history.Durable,
	FollowsID: history.BadInput, TakesDot: history.PublishedData,
	Crashes:   history.Lives,
	EndsBadly: history.Lives,
}

// Bugs are all of them, in alphabetical order.
func Bugs() []Bug {
	all := make([]Bug, 0, len(breaks))
	for b := range breaks {
		all = append(all, b)
	}
	slices.Sort(all)
	return all
}

// Breaks is the promise that a driver with the bug breaks.
func (b Bug) Breaks() history.Promise { return breaks[b] }
