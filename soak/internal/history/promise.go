package history

// Promise is something that the driver has to keep, by a short name.
type Promise string

// The promises of the design, in its order.
const (
	PublishedData Promise = "published data stays"              // 1. never deleted, moved or hidden
	Durable       Promise = "a successful reply is durable"     // 2. across crashes; nothing is kept for ever or deleted early
	FailedPublish Promise = "a failed publish leaves no mount"  // 3. or its code says that it is not certain
	AnyOrder      Promise = "calls may come in any order"       // 4. repeated, doubled, cancelled, reordered
	Independent   Promise = "volumes do not wait for others"    // 4. nothing that one volume does delays another's calls
	Contained     Promise = "deletion stays inside"             // 5. not through symlinks, nor into mounts
	FullDisk      Promise = "a full disk is made free"          // 6. unpublish and eviction work
	NoLeak        Promise = "nothing leaks"                     // 7. mounts, targets, data, trash
	Monotonic     Promise = "the wall clock does not matter"    // 8. a step neither hastens nor delays
	BadInput      Promise = "bad input gets a clear error"      // 9. and never reaches a path or a mount
	FlatCost      Promise = "cost follows the work"             // 10. not the number of mounted or retained volumes
	ReadsTrue     Promise = "reading shows what was written"    // 11. every byte of it, or an error
	ReadsInside   Promise = "reading stays inside"              // 11. not through symlinks, nor into mounts or FIFOs
	ReadsNoTrace  Promise = "reading leaves no trace"           // 11. no access time
	ListsTrue     Promise = "a list shows what is retained"     // 11, 12. all of it once, and nothing of others
	Removes       Promise = "a removal takes its volume alone"  // at once, and whole
	Holds         Promise = "pins and releases hold"            // across crashes, and not for longer
	Limits        Promise = "a size limit holds"                // 13. and refuses nothing that is below it
	KeepsFailed   Promise = "what a failed pod left is kept"    // 14. for its whole lifespan
	Attached      Promise = "an attached volume stays as it is" // 14. while a pod looks at it, and for a grace after that
	Tombstones    Promise = "what goes leaves a tombstone"      // 14. one, which says why
	MakesRoom     Promise = "what goes early makes room"        // 14. or the others stay
	PerOwner      Promise = "the first and last of owners stay" // 14. and of each owner no others, where that is asked for
)

// What the run itself needs, beyond the design's promises.
const (
	ReadOnly  Promise = "read-only volumes cannot be written"
	Locals    Promise = "local volumes stay as they were left"
	Lives     Promise = "the driver starts, lives and ends as told"
	Completed Promise = "the run comes to its end"
)

// Promises are all of them, in the order of the report.
var Promises = []Promise{
	PublishedData, Durable, FailedPublish, AnyOrder, Independent, Contained,
	FullDisk, NoLeak, Monotonic, BadInput, FlatCost, ReadsTrue, ReadsInside, ReadsNoTrace, ListsTrue, Removes, Holds, Limits, KeepsFailed,
	Attached, Tombstones, MakesRoom, PerOwner,
	ReadOnly, Locals, Lives, Completed,
}
