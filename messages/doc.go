// Package messages holds what the actors of Katbox say to one another: one file for each
// conversation, and on each message who sends it and who receives it.
//
//	gRPC handlers      HTTP handlers      pod watch, orphan search, gateways, logs, archive
//	  |                  |                  |
//	  | PublishVolume    | ListRetained     | PodsSeen
//	  | UnpublishVolume  | ListAwake        | FindUnknown
//	  | VolumeStats      | DescribeVolume   | AdoptVolume
//	  | Status           | BeginReading     | OwnVolume
//	  | ProbeStore       | EndReading       | EndVolume
//	  |                  | HoldVolume       | CountHoldings
//	  |                  | PurgeVolume      | KeepLogs
//	  |                  |                  | LogsKept
//	  |                  |                  | KeepEnd
//	  |                  |                  | NextToArchive
//	  |                  |                  | ArchivedVolume
//	  v                  v                  v
//	+---------------------------------------+  MeasureDisk   +--------+
//	| supervisor: owns the index of all     | -------------> |  disk  |
//	| volumes; some have an actor beside it | <------------- |        |
//	+---------------------------------------+    Pressure    +--------+
//	 | requests,    ^        | MeasureSizes ^                   ^
//	 | DeleteVolume,| AtRest v              | SizesMeasured     |
//	 | PodsSeen,    | Stuck, +--------------+                   |
//	 | Resume       | Volume |    sizes     |                   |
//	 v              | Is     +--------------+                   |
//	+---------------------------+         Erase, NoSpace        |
//	| volume: one for each that | ------------------------------+
//	| is mounted or changing    |  ChangeRecord  +----------+
//	+---------------------------+ -------------> | recorder |
//	                                             +----------+
//
// In the controller of the pools, in the package messages/pools:
//
//	gRPC handlers                            watches         connections of nodes
//	  | CreateVolume, RemoveVolume,            | Seen, Gone,    | NodePools,
//	  | GrowVolume, AttachVolume, ...          | Listed         | NodeAway
//	  | FindVolume, ListVolumes, ...           |                |
//	  v                                        v                v
//	+------------------------------------------------------------------------------------+
//	| supervisor: the index of all resources, and which node has which disk; what        |
//	| concerns several of them is decided here                                           |
//	+------------------------------------------------------------------------------------+
//	 | requests,  ^ AtRest, Stuck,         | UsePool,    ^ CountPool,  | ClassSeen,     ^ EndRetained,
//	 | Resume     | Seen, Gone,            | DoubtPool,  | ListPool,   | PoolMember,    | WarnPool
//	 |            | UsePool, DoubtPool,    | PoolTook,   | TakePlace,  | VolumeRetained |
//	 |            | PoolTook, MayDelete,   | PoolSeen,   | FindDisk    |                |
//	 v            | ClaimDisk, ...         v ProbePool   |             v                |
//	+---------------------------------+   +---------------------------------+   +---------+
//	| volume, snapshot, attachment,   |   | pool: one for each Pool         |   | classes |
//	| node: one for each that is      |   +---------------------------------+   +---------+
//	| changing, and its task          |     | PoolReport, WantsOfClass, CountReserved  ^ ^
//	+---------------------------------+     +------------------------------------------+ |
//	  | ReservePool, ReleasePool, NameOfClass, LifespanOfClass                           |
//	  +----------------------------------------------------------------------------------+
//
// A gRPC handler asks classes for a ClassCapacity by itself. Beside them is unclaimed, which asks the supervisor once a day to
// ListClaimed.
//
// On a node with volumes of arrays:
//
//	gRPC handlers
//	  | StageVolume, PublishStaged, UnpublishStaged,
//	  | UnstageVolume, ExpandStaged, StagedStats
//	  v
//	+--------------------------------------------------+
//	| supervisor: knows no volumes; at rest they are a |
//	| record, mounts and devices. Watches the sessions |
//	+--------------------------------------------------+
//	 | requests   | Resume             ^ UseSession, ReleaseSession, ReportSession
//	 |            v                    |
//	 |  +---------------------------+  |    +----------------------------------+
//	 |  | session: one for each     |--+    | report: writes the status of an  |
//	 |  | target that is in use     |  |    | attachment until it has succeeded |
//	 |  +---------------------------+  |    +----------------------------------+
//	 v                                 |
//	+-----------------------------------------+
//	| volume: one for each that is changing,  |
//	| one for each that is measured; its task |
//	+-----------------------------------------+
//
// On a node with pools on its disks, in the package messages/local:
//
//	gRPC handlers              the controller's questions
//	  | StageVolume, ...         | MakeLocal, GrowLocal, CommentLocal,     | LocalPools, ListLocal,
//	  v                          v DeleteLocal, SnapshotLocal              | UseLocal
//	+----------------------------------------------------+                |
//	| supervisor: knows no volumes; at rest they are a    |                v
//	| record on the pool's disk, and mounts               | <------ +----------------------------+
//	+----------------------------------------------------+  Local- | keeper: knows the disks, and |
//	 | requests, Resume      ^ AtRest, Stuck            Unfinished | promises their room          |
//	 v                       |                                     +------------------------------+
//	+----------------------------------------------+ UseLocal, ReserveLocal,     ^
//	| volume, snapshot: one for each that is        | SettleLocal, ClaimLocal,    |
//	| changing, one for each that is measured; task | ForgetLocal, UnshowLocal ---+
//	+----------------------------------------------+
//
// Messages are orders (PublishVolume), questions (VolumeStats) or facts (Stuck). No one changes a
// message after it was sent. Messages are sent as pointers.
package messages

// ToVolume is a message for a volume actor. Only the supervisor sends these.
type ToVolume interface{ toVolume() }
