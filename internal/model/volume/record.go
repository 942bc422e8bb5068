package volume

import (
	"fmt"
	"slices"
	"time"
)

// Record is what is durably known of a volume. It is a value: its methods return changed copies, so
// actors may pass it on freely.
type Record struct {
	ID  ID
	Pod PodUID
	// Namespace, PodName, VolumeName (its name in the pod's spec) and ServiceAccount say whose data
	// this is, for people who look at retained volumes. A name that is not known is empty.
	Namespace      string
	PodName        string
	VolumeName     string
	ServiceAccount string
	// Owner is whose this is according to the API server.
	Owner Owner
	Phase Phase
	// Targets are where the volume is to be mounted; empty once retained.
	Targets []Target
	// Published is when the pod's volume was first published, in whole seconds of the wall clock; a
	// publish of a retained volume begins anew. It is zero for a volume that was found. It is for
	// people: no deadline depends on it. Until the daemon ends or the volume is retained it has a reading
	// of the monotonic clock too, in case the wall clock is set.
	Published time.Time
	// Unpublished is when the volume was retained. It is zero before that.
	Unpublished time.Time
	// Lifespan is how long the volume is kept after Unpublished, without pressure and without a hold.
	Lifespan time.Duration
	// Terms are what the volume was promised when it was first published.
	Terms Terms
	// Outcome is how the pod ended, as far as that is known.
	Outcome Outcome
	// Hold is what a person decided about the retained volume.
	Hold Hold
	// ArchivedUntil is until when the archive keeps its copy of the retained volume, in whole hours of the wall clock; zero
	// if it has none.
	ArchivedUntil time.Time
	// Project is the ID of the volume's project quota; 0 if it has none.
	Project uint32
	// Attach is the retained volume that is mounted read-only in place of data of its own; the zero Place
	// for a volume that has its own.
	Attach Place
}

// Place is where the volume's data is.
func (r Record) Place() Place { return Place{Pod: r.Pod, ID: r.ID} }

// Data is the place of what the volume's mounts show.
func (r Record) Data() Place {
	if r.Attach != (Place{}) {
		return r.Attach
	}
	return r.Place()
}

// Target is one place where a volume is mounted.
type Target struct {
	// Path is the absolute target path below the kubelet's pods directory.
	Path string
	// ReadOnly says that the mount refuses writes.
	ReadOnly bool
	// Flags are the further mount flags that were asked for, sorted.
	Flags []string
	// MultiWriter says that the volume may be mounted at other targets too (CSI access mode
	// SINGLE_NODE_MULTI_WRITER).
	MultiWriter bool
	// Leaving says that an unmount was ordered and the kernel has not confirmed it.
	Leaving bool
}

// SameMount reports whether both would give the same mount.
func (t Target) SameMount(u Target) bool {
	return t.Path == u.Path && t.ReadOnly == u.ReadOnly && slices.Equal(t.Flags, u.Flags)
}

// Target returns the target at the given path.
func (r Record) Target(path string) (Target, bool) {
	for _, t := range r.Targets {
		if t.Path == path {
			return t, true
		}
	}
	return Target{}, false
}

// WithTarget returns a copy of r that has t, in place of a target at the same path.
func (r Record) WithTarget(t Target) Record {
	r = r.WithoutTarget(t.Path)
	r.Targets = append(r.Targets, t)
	return r
}

// WithoutTarget returns a copy of r without the target at path.
func (r Record) WithoutTarget(path string) Record {
	r.Targets = slices.DeleteFunc(slices.Clone(r.Targets), func(t Target) bool { return t.Path == path })
	return r
}

// Named returns a copy of r with the names that a publish brings.
func (r Record) Named(p Publication) Record {
	r.Namespace, r.PodName, r.VolumeName, r.ServiceAccount = p.Namespace, p.PodName, p.VolumeName, p.ServiceAccount
	return r
}

// Publish returns the record of a volume that is about to be mounted for p.
func (r Record) Publish(p Publication, now time.Time) Record {
	if !r.Phase.Live() {
		r.Published = now.Add(-time.Duration(now.Nanosecond()))
	}
	r = r.Named(p)
	if r.Terms == (Terms{}) {
		r.Terms = p.Terms
	}
	r.Phase = Publishing
	r.Unpublished = time.Time{}
	r.Outcome, r.Hold, r.ArchivedUntil = OutcomeUnknown, Hold{}, time.Time{}
	return r.WithTarget(p.Target)
}

// Retain returns the record of a volume whose pod is gone: it is kept for lifespan from now on.
func (r Record) Retain(now time.Time, lifespan time.Duration) Record {
	r.Phase = Retained
	r.Targets = nil
	if !r.Published.IsZero() {
		// By the wall clock as it is now.
		r.Published = time.Unix(now.Add(r.Published.Sub(now)).Round(time.Second).Unix(), 0)
	}
	r.Unpublished = now
	r.Lifespan = lifespan
	return r
}

// Publication is a request to mount a volume, already validated.
type Publication struct {
	ID             ID
	Pod            PodUID
	Namespace      string
	PodName        string
	VolumeName     string
	ServiceAccount string
	Target         Target
	// Terms are what the volume is promised, if this is its first publish.
	Terms Terms
	// Refused is why it is refused, if it is the volume's first publish: the terms that the pod asks for
	// are not acceptable. A volume that is known has its terms already, and the bounds may have changed
	// since.
	Refused error
	// Cut says which lifespans were cut to the longest that the namespace may have; empty if none was.
	Cut string
	// Attach is the retained volume to mount in place of a new one; the zero Place for none.
	Attach Place
}

// Place is where the volume's data is.
func (p Publication) Place() Place { return Place{Pod: p.Pod, ID: p.ID} }

// Stats is what a volume uses of its file system, and its condition.
type Stats struct {
	// Space is the file system's, or less: what an enforced limit of the volume allows.
	Space Space
	// Used is the volume's own.
	Used Size
	// Abnormal says that something is wrong with a persistent volume; Condition says what. Readable says that it takes
	// no writes, but can be read.
	Abnormal, Readable bool
	Condition          string
}

// Change is one change of what is durably known.
type Change struct {
	ID ID
	// Record is the volume's record, with the same ID; nil forgets the volume.
	Record *Record
	// Tombstone is kept of a volume that is forgotten, in the same transaction; nil for none. Its Number
	// is not set.
	Tombstone *Tombstone
}

// Size is an amount of room: what a volume takes, or what a file system lacks.
type Size struct{ Bytes, Inodes int64 }

// Add returns the sum of both.
func (s Size) Add(t Size) Size { return Size{s.Bytes + t.Bytes, s.Inodes + t.Inodes} }

// Sub returns the difference.
func (s Size) Sub(t Size) Size { return Size{s.Bytes - t.Bytes, s.Inodes - t.Inodes} }

// Max returns the larger number of each.
func (s Size) Max(t Size) Size { return Size{max(s.Bytes, t.Bytes), max(s.Inodes, t.Inodes)} }

// Space is the room on a file system.
type Space struct {
	// Total is the size of the file system, or of a quota on the directory that it was asked of. Its Inodes are 0 if
	// their number has no limit, as on btrfs.
	Total Size
	// Free is what processes without privileges can still get.
	Free Size
	// DiskTotal and DiskFree are those of the whole file system where Total and Free are a quota's; else zero.
	DiskTotal, DiskFree Size
}

// Reason is why a retained volume is deleted.
type Reason uint8

const (
	// Expired: its lifespan is over.
	Expired Reason = iota
	// ForBytes: its lifespan is not over, but the disk runs out of bytes.
	ForBytes
	// ForInodes: its lifespan is not over, but the disk runs out of inodes.
	ForInodes
	// Purged: a person ordered its deletion at once.
	Purged
	// ForReleased: a person released it, and the grace after that is over or room was needed.
	ForReleased
	// ForNamespace: its lifespan is not over, but its namespace retains more than it may.
	ForNamespace
	// ForFloor: it was pinned, or younger than the minimum lifespan, but the disk was all but full and
	// nothing else was left that could go.
	ForFloor
	// Interrupted: its lifespan was not over, and all that is known is that its deletion began before,
	// and was interrupted by the end of the process or an error of the disk.
	Interrupted
	// ForOwner: its lifespan is not over, but of its pod's owner enough other volumes stay.
	ForOwner
)

// Early reports whether the volume goes before its lifespan is over because room is scarce: on the disk, or of what its
// namespace may take.
func (r Reason) Early() bool {
	return r == ForBytes || r == ForInodes || r == ForNamespace || r == ForFloor
}

// String returns the reason in one word: that of the API, of metrics, and of logs.
func (r Reason) String() string {
	if r <= ForOwner {
		return [...]string{"expired", "bytes", "inodes", "purged", "released", "namespace", "floor", "interrupted", "owner"}[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// ReasonInWords returns the word of a reason, and for people what it means. A word that is not known stays.
func ReasonInWords(reason string) string {
	meaning := map[string]string{
		ForBytes.String():     "the disk ran short of space",
		ForInodes.String():    "the disk ran short of inodes",
		ForNamespace.String(): "it retained too much",
		ForFloor.String():     "the disk was nearly full",
		Interrupted.String():  "its deletion was cut short, and finished later",
		ForOwner.String():     "the first and the last pods of its owner stay",
	}[reason]
	if meaning == "" {
		return reason
	}
	return reason + ": " + meaning
}
