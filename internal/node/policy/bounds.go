package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// Bounds are what the volumes of a namespace get without attributes, and how far attributes may go.
type Bounds struct {
	// Lifespan is how long a volume is kept whose pod does not say so.
	Lifespan time.Duration
	// LifespanSucceeded is the same for the volume of a pod that Succeeded; 0 is the volume's lifespan.
	LifespanSucceeded time.Duration
	// MaxLifespan is what longer lifespans are cut to.
	MaxLifespan time.Duration
	// Limit is what a volume may take whose pod sets no limit, MaxLimit the most that a pod may ask for;
	// zero bytes or inodes is no limit. Where there is a most, it is also what a pod without a limit gets.
	Limit, MaxLimit volume.Size
	// Retain are the values that pods may choose from; the first is for those who do not choose. Empty is
	// all of them, and Always.
	Retain []volume.Retain
	// MaxRetained is how much the retained volumes of the namespace may take on a node; zero bytes or
	// inodes is any amount.
	MaxRetained volume.Size
	// PerOwner is of how many pods of an owner the retained volumes stay on a node.
	PerOwner volume.PerOwner
	// NoAttach: pods of the namespace may not attach retained volumes.
	NoAttach bool
	// NoLogs: what the containers of pods of the namespace print is not kept.
	NoLogs bool
	// Archive is after which outcomes a volume is archived whose pod does not say so, MaxArchive the most that a pod gets.
	Archive, MaxArchive volume.Archive
}

// Check returns why the bounds contradict one another.
func (b Bounds) Check() error {
	switch {
	case b.Lifespan < 0 || b.LifespanSucceeded < 0 || b.MaxLifespan < 0:
		return fmt.Errorf("a lifespan is negative")
	case b.LifespanSucceeded > b.Lifespan:
		return fmt.Errorf("the lifespan after success, %s, is longer than the lifespan, %s",
			duration.Format(b.LifespanSucceeded), duration.Format(b.Lifespan))
	case b.Lifespan > b.MaxLifespan:
		return fmt.Errorf("the lifespan, %s, is longer than the longest, %s", duration.Format(b.Lifespan), duration.Format(b.MaxLifespan))
	case b.Archive > b.MaxArchive:
		return fmt.Errorf("archive, %s, is more than maxArchive, %s", b.Archive, b.MaxArchive)
	case b.MaxLimit.Bytes > 0 && b.Limit.Bytes > b.MaxLimit.Bytes:
		return fmt.Errorf("the limit of bytes, %s, is more than the most, %s", bytes(b.Limit.Bytes), bytes(b.MaxLimit.Bytes))
	case b.MaxLimit.Inodes > 0 && b.Limit.Inodes > b.MaxLimit.Inodes:
		return fmt.Errorf("the limit of inodes, %d, is more than the most, %d", b.Limit.Inodes, b.MaxLimit.Inodes)
	}
	if err := b.PerOwner.Check(); err != nil {
		return fmt.Errorf("maxPerOwner: %w", err)
	}
	return nil
}

// cut returns what is asked, within the bounds: an emptyDir was never refused for its size, so nor is the volume that takes
// its place.
func (b Bounds) cut(a asked) asked {
	if b.MaxLimit.Bytes > 0 {
		a.limit.Bytes = min(a.limit.Bytes, b.MaxLimit.Bytes)
	}
	if b.MaxLimit.Inodes > 0 {
		a.limit.Inodes = min(a.limit.Inodes, b.MaxLimit.Inodes)
	}
	if len(b.Retain) > 0 && a.retain != nil && !slices.Contains(b.Retain, *a.retain) {
		a.retain = nil
	}
	return a
}

// terms are what is promised to a volume that asks.
func (b Bounds) terms(a asked) (volume.Terms, error) {
	if a.converted {
		a = b.cut(a)
	}
	t := volume.Terms{
		Lifespan: b.Lifespan,
		Limit: volume.Size{
			Bytes:  cmp.Or(a.limit.Bytes, b.Limit.Bytes, b.MaxLimit.Bytes),
			Inodes: cmp.Or(a.limit.Inodes, b.Limit.Inodes, b.MaxLimit.Inodes),
		},
		Mode: a.mode, NoLogs: b.NoLogs || a.noLogs, Archive: b.Archive,
	}
	if a.archive != nil {
		t.Archive = min(*a.archive, b.MaxArchive)
	}
	if a.lifespan > 0 {
		t.Lifespan = clamp(a.lifespan, b.MaxLifespan)
	}
	t.LifespanSucceeded = min(cmp.Or(b.LifespanSucceeded, t.Lifespan), t.Lifespan)
	if a.lifespanSucceeded > 0 {
		t.LifespanSucceeded = clamp(a.lifespanSucceeded, t.Lifespan)
	}
	if len(b.Retain) > 0 {
		t.Retain = b.Retain[0]
	}
	if a.retain != nil {
		t.Retain = *a.retain
	}
	switch {
	case b.NoAttach && a.attach != "":
		return volume.Terms{}, invalid(api.KeyAttach, "is not allowed in this namespace; kubectl katbox reads retained volumes without a pod")
	case len(b.Retain) > 0 && !slices.Contains(b.Retain, t.Retain):
		return volume.Terms{}, invalid(api.KeyRetain, fmt.Sprintf("is %s, but in this namespace it has to be %s", t.Retain, words(b.Retain)))
	case b.MaxLimit.Bytes > 0 && t.Limit.Bytes > b.MaxLimit.Bytes:
		return volume.Terms{}, invalid("sizeLimit", fmt.Sprintf("is %s, but in this namespace it is at most %s",
			bytes(t.Limit.Bytes), bytes(b.MaxLimit.Bytes)))
	case b.MaxLimit.Inodes > 0 && t.Limit.Inodes > b.MaxLimit.Inodes:
		return volume.Terms{}, invalid("inodeLimit", fmt.Sprintf("is %d, but in this namespace it is at most %d",
			t.Limit.Inodes, b.MaxLimit.Inodes))
	}
	return t, nil
}

// words writes "Always, OnFailure or Never".
func words(all []volume.Retain) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.String()
	}
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

func bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
