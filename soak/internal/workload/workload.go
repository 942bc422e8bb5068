package workload

import "cmp"

// Workload describes a run. [Read] and [Preset] load one, fill in what was left
// out, and check it.
type Workload struct {
	// Pods is how many pods live and die, Parallel how many are on the node at
	// a time at most: a pod that arrives when there is no room waits.
	Pods     int     `yaml:"pods"`
	Parallel int     `yaml:"parallel"`
	Arrival  Arrival `yaml:"arrival"`
	Length   Length  `yaml:"length"`
	// Drain has the pods run, whatever Length says, until all have arrived and
	// all volumes are mounted, and then deletes all of them at once, as the
	// drain of a node does. It needs a Parallel with room for all Pods.
	Drain bool `yaml:"drain"`
	// DeletedEarly is the share of pods that are deleted while their volumes
	// are being mounted.
	DeletedEarly float64 `yaml:"deletedEarly"`
	// Failed is the share of pods that fail. The others succeed.
	Failed float64 `yaml:"failed"`
	// Again is the share of pods that are on the node once more, soon after they
	// went, so that their retained volumes are published again. In a drain none is.
	Again float64 `yaml:"again"`
	// Owned is the share of pods that a Job, a CronJob, a ReplicaSet or a StatefulSet makes one after the other. A gateway
	// then tells the driver whose pods are.
	Owned    float64  `yaml:"owned"`
	Volumes  Volumes  `yaml:"volumes"`
	Contents Contents `yaml:"contents"`
	Calls    Calls    `yaml:"calls"`
	Reading  Reading  `yaml:"reading"`
	Driver   Driver   `yaml:"driver"`
	Disk     Disk     `yaml:"disk"`
	Faults   []Fault  `yaml:"faults"`
	// Timeout is when the run gives up.
	Timeout Duration `yaml:"timeout"`
}

// Arrival is how pods come: in bursts of Burst pods at a time, Rate pods a
// second on average, with random times between the bursts (a Poisson process).
// With a Rate of 0 they come as soon as there is room.
type Arrival struct {
	Rate  float64 `yaml:"rate"`
	Burst int     `yaml:"burst"`
}

// Length is how long the containers of a pod run once its volumes are mounted.
type Length struct {
	// Distribution is constant (always Mean), uniform (0 to twice the Mean),
	// exponential or lognormal (many short ones and a few long ones).
	Distribution Distribution `yaml:"distribution"`
	Mean         Duration     `yaml:"mean"`
	// Max cuts off what the distribution draws above it; 0 does not.
	Max Duration `yaml:"max"`
}

// Distribution names a distribution of lengths.
type Distribution string

// The distributions.
const (
	Constant    Distribution = "constant"
	Uniform     Distribution = "uniform"
	Exponential Distribution = "exponential"
	Lognormal   Distribution = "lognormal"
)

// Volumes is what volumes a pod has.
type Volumes struct {
	// Each pod has between Min and Max inline volumes.
	Min int `yaml:"min"`
	Max int `yaml:"max"`
	// ReadOnly is the share that is mounted read-only.
	ReadOnly float64 `yaml:"readOnly"`
	// Persistent is the share of pods that use, beside their inline volumes,
	// one of Pool persistent volumes. Only a driver with staging has them.
	Persistent float64 `yaml:"persistent"`
	Pool       int     `yaml:"pool"`
	// OnFailure is the share of inline volumes that are to be kept only if their pod
	// fails. The kubelet then says how pods end.
	OnFailure float64 `yaml:"onFailure"`
	// Limits is the share of inline volumes that ask for a size, a number of inodes and a
	// lifespan of their own, with attributes. They have more room than they need.
	Limits float64 `yaml:"limits"`
	// Tight is the share of inline volumes that ask for little more room than they need, and
	// whose pods write until they are refused. The disk has to have quotas.
	Tight float64 `yaml:"tight"`
}

// Contents is what a pod writes into a volume, beside the marker that each gets.
type Contents struct {
	// Each volume gets between 0 and Files files of 0 to Bytes bytes each.
	Files int   `yaml:"files"`
	Bytes Bytes `yaml:"bytes"`
	// The other fields are shares of volumes. Deep has a tree of many levels;
	// Names has odd names: blanks, line ends, 255 bytes, no valid UTF-8; Sparse
	// a file with a huge hole; Links hard links and symlinks, some of which lead
	// outside; Modes files and directories without any permission; Special
	// sockets and FIFOs.
	Deep    float64 `yaml:"deep"`
	Names   float64 `yaml:"names"`
	Sparse  float64 `yaml:"sparse"`
	Links   float64 `yaml:"links"`
	Modes   float64 `yaml:"modes"`
	Special float64 `yaml:"special"`
}

// Calls is what happens to calls on their way, as shares of them.
type Calls struct {
	// Doubled calls are sent twice, half of them at the same time.
	Doubled float64 `yaml:"doubled"`
	// Cancelled calls are given up midway, and repeated later.
	Cancelled float64 `yaml:"cancelled"`
	// Reordered unpublish calls are overtaken by, or overtake, a late repetition
	// of the publish.
	Reordered float64 `yaml:"reordered"`
	// Bad is how many calls with bad input there are for each pod, on average.
	Bad float64 `yaml:"bad"`
}

// Reading is what people do with retained volumes, through the driver's admin
// socket.
type Reading struct {
	// Readers is how many people list and read at a time. With 0 the driver needs
	// no admin socket.
	Readers int `yaml:"readers"`
	// Removed is the share of volumes that a person removes while they are
	// retained.
	Removed float64 `yaml:"removed"`
	// Pinned is the share that a person keeps beyond its lifespan, Released the
	// share that a person lets go before.
	Pinned   float64 `yaml:"pinned"`
	Released float64 `yaml:"released"`
	// Attached is the share that another pod attaches for a while, to look at it. A
	// person releases it meanwhile.
	Attached float64 `yaml:"attached"`
}

// Driver is the configuration of the driver under test, by its flags.
type Driver struct {
	Lifespan      Duration `yaml:"lifespan"`
	Headroom      float64  `yaml:"headroom"`
	PruneInterval Duration `yaml:"pruneInterval"`
	OrphanGrace   Duration `yaml:"orphanGrace"`
	// ReleaseGrace is how long a volume is kept that a person releases.
	ReleaseGrace Duration `yaml:"releaseGrace"`
	// MaxLifespan is how long a volume is kept that asks for a lifespan of its own: the
	// driver rounds what a pod asks for up to a minute, and then down to that.
	MaxLifespan Duration `yaml:"maxLifespan"`
	// MaxPinned is which share of the disk volumes may take that are pinned or attached; 0 is nearly all: what
	// is pinned is a small part of what is retained, and that a small part of the disk.
	MaxPinned float64 `yaml:"maxPinned,omitempty"`
	// MaxPerOwner is of how many pods of an owner the volumes stay; without it, of all.
	MaxPerOwner PerOwner `yaml:"maxPerOwner,omitempty"`
}

// PerOwner says of how many of the first and of the last pods of an owner the volumes stay.
type PerOwner struct {
	First int `yaml:"first"`
	Last  int `yaml:"last"`
}

// Pinned is the share of the disk that volumes may take that are pinned or attached.
func (d Driver) Pinned() float64 { return cmp.Or(d.MaxPinned, 0.9) }

// Disk is the file system that the working directory is on.
type Disk struct {
	// Kind is directory, tmpfs, ext4, xfs, btrfs or auto, which is ext4 where
	// loop devices can be had and else tmpfs. A directory is of whatever file
	// system the machine has, so nothing may fill it.
	Kind string `yaml:"kind"`
	Size Bytes  `yaml:"size"`
	// Inodes is how many there are; 0 leaves it to the file system. Only ext4
	// and tmpfs have a fixed number of them.
	Inodes int64 `yaml:"inodes"`
	// Quotas says that it enforces the limits of volumes, by project quotas. Only ext4 and
	// xfs can, on a kernel that has them.
	Quotas bool `yaml:"quotas"`
}

// Fault is something that goes wrong, some times in a run.
type Fault struct {
	Kind  FaultKind `yaml:"kind"`
	Times int       `yaml:"times"`
	// For is how long it lasts; only lasting faults have it, see
	// [FaultKind.Lasting].
	For Duration `yaml:"for,omitempty"`
	// Step is by how much the wall clock goes forwards or, below 0, back;
	// only a clock-step has it.
	Step Duration `yaml:"step,omitempty"`
}

// FaultKind names a fault.
type FaultKind string

// The faults of the node.
const (
	DaemonKill     FaultKind = "daemon-kill"     // SIGKILL, and a restart after For
	KubeletRestart FaultKind = "kubelet-restart" // it forgets everything and looks around again, after For
	DiskFull       FaultKind = "disk-full"       // a pod fills the disk, for For
	NoInodes       FaultKind = "no-inodes"       // a pod uses all inodes up, for For
	SlowDisk       FaultKind = "slow-disk"       // the disk stands still most of the time, for For
	ClockStep      FaultKind = "clock-step"      // the daemon's wall clock steps by Step
	OpenFiles      FaultKind = "open-files"      // a process has the files of all retained volumes open while a pod fills the disk, for For
)

// The faults of single volumes, which the seed picks.
const (
	BusyTarget    FaultKind = "busy-target"    // a process holds the target after its pod, for For
	ForeignMount  FaultKind = "foreign-mount"  // something is bind-mounted in the data directory, until For after the deadline
	NestedMount   FaultKind = "nested-mount"   // something is bind-mounted through the target and stays after the pod, for For
	PodRemoved    FaultKind = "pod-removed"    // the pod's directory is removed under the driver, or all but a file that stays
	VolumeRemoved FaultKind = "volume-removed" // the data directory is removed under the driver
	VolumeSymlink FaultKind = "volume-symlink" // the data directory is replaced by a symlink that leads outside
)

// MachineSlow is no fault that a workload can have: the machine itself was too
// busy for the run, as the soak saw by its own writes.
const MachineSlow FaultKind = "machine-slow"

// kinds are all faults that a workload can have, in the order of the constants.
var kinds = []FaultKind{
	DaemonKill, KubeletRestart, DiskFull, NoInodes, SlowDisk, ClockStep, OpenFiles,
	BusyTarget, ForeignMount, NestedMount, PodRemoved, VolumeRemoved, VolumeSymlink,
}

// OfVolume reports whether the fault concerns one volume and not the node.
func (k FaultKind) OfVolume() bool {
	switch k {
	case BusyTarget, ForeignMount, NestedMount, PodRemoved, VolumeRemoved, VolumeSymlink:
		return true
	}
	return false
}

// Lasting reports whether the fault has a length.
func (k FaultKind) Lasting() bool {
	switch k {
	case ClockStep, PodRemoved, VolumeRemoved, VolumeSymlink:
		return false
	}
	return true
}
