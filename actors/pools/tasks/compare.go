package tasks

import (
	"cmp"
	"maps"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// sameVolume reports whether two calls ask for the same volume.
func sameVolume(a, b pools.NewVolume) bool {
	return a.Name == b.Name && a.Class == b.Class && a.Kind == b.Kind && a.Required == b.Required && a.Limit == b.Limit &&
		a.Block == b.Block && a.Protocol == b.Protocol && a.FSType == b.FSType && a.Shared == b.Shared && a.Source == b.Source &&
		a.Claim == b.Claim && maps.Equal(a.Options, b.Options)
}

// sameAs refuses a call for a volume that there is with other properties.
func (t *task) sameAs(v *v1alpha1.PoolVolume, n pools.NewVolume) error {
	if v.DeletionTimestamp != nil {
		return rules.Errorf(volume.ErrBusy, "volume %s is being deleted; try again", v.Name)
	}
	if s := v.Spec.RequestName; s != "" && pools.VolumeName(s) != t.name {
		return rules.Errorf(volume.ErrConflict, "volume %s was given to another claim, whose request is %s", v.Name, s)
	}
	if v.Status.State == v1alpha1.VolumeRetained || rules.IsEnding(v) {
		return notAnymore(v)
	}
	conflict := func(what string, has, asked any) error {
		return rules.Errorf(volume.ErrConflict, "volume %s exists with %s %v, asked for %v", v.Name, what, has, asked)
	}
	size := v.Spec.Size.Value()
	asked := v.Spec.Protocol
	if n.Kind == pools.KindLocal {
		asked = v1alpha1.Local
	} else if n.Block {
		asked = v1alpha1.ISCSI
	} else if n.Protocol != "" {
		asked = v1alpha1.Protocol(n.Protocol)
	}
	has, fsType := pools.Source{}, cmp.Or(n.FSType, pools.DefaultFSType)
	if s := v.Spec.Source; s != nil {
		fsType = n.FSType // a copy has its source's, where nothing is said
		has = pools.Source{Snapshot: s.Snapshot, Volume: s.Volume}
	}
	switch {
	case v.Spec.Management == v1alpha1.External:
		return rules.Errorf(volume.ErrConflict, "volume %s exists and was not made by Katbox", v.Name)
	case rules.KindOfVolume(v) == pools.KindLocal && n.Kind != pools.KindLocal:
		return rules.Errorf(volume.ErrConflict, "volume %s exists in pool %s, which is on a node", v.Name, v.Spec.PoolName)
	case n.Class != "" && n.Class != v.Spec.ClassName:
		return conflict("PoolClass", v.Spec.ClassName, n.Class)
	case size < n.Required:
		return conflict("bytes", size, n.Required)
	case n.Limit > 0 && size > n.Limit:
		return conflict("bytes", size, n.Limit)
	case volumeModeOf(n.Block) != v.Spec.VolumeMode:
		return conflict("volume mode", v.Spec.VolumeMode, volumeModeOf(n.Block))
	case asked != v.Spec.Protocol:
		return conflict("protocol", v.Spec.Protocol, asked)
	case v.Spec.FSType != "" && fsType != "" && fsType != v.Spec.FSType:
		return conflict("file system", v.Spec.FSType, fsType)
	case has != n.Source:
		return conflict("source", has, n.Source)
	}
	return nil
}

// mark says what the comment of a volume on an array must be for the volume to be ours.
type mark bool

const (
	// marked: it names our cluster and the claim. No resource has claimed the name before.
	marked mark = true
	// perhapsUnmarked: it does not name another cluster. The name was free when the resource claimed it, and
	// the comment may not have been written, or have been changed since.
	perhapsUnmarked mark = false
)

// ours refuses a volume on the array that has the name of the resource and is another one.
func (t *task) ours(v *v1alpha1.PoolVolume, have array.Volume, m mark) error {
	taken := func(why string) error {
		return rules.Errorf(volume.ErrConflict, "%s has a volume %s already (%s), %s; rename or delete that one",
			t.Ground(v.Spec.PoolName), have.Name, have.ID, why)
	}
	want, by := sizeFor(v), t.whose(v, have)
	switch {
	case m == marked && by != byThis, by == byAnotherCluster:
		return taken("which this cluster has not made for this claim")
	case have.Block != rules.OnDevice(v):
		return taken("which is reached over another protocol")
	case m == perhapsUnmarked && (by == byThis || by == byCluster):
		return nil // the array may round sizes
	case have.Size > want, v.Spec.Source == nil && have.Size != want:
		return taken("with another size")
	}
	return nil
}

// maker is what the comment of a volume on an array says of who has made it.
type maker int

const (
	// byThis: this cluster, for the claim of the resource. byCluster: this cluster.
	byThis maker = iota
	byCluster
	// byUnknown: there is no comment. byPerson: none of ours.
	byUnknown
	byPerson
	byAnotherCluster
)

// whose reads the comment of a volume on an array.
func (t *task) whose(v *v1alpha1.PoolVolume, have array.Volume) maker {
	comment, ours := pools.ParseComment(have.Comment), t.comment(v)
	switch {
	case have.Comment == "":
		return byUnknown
	case comment.Cluster == "":
		return byPerson
	case comment.Cluster != t.Cluster:
		return byAnotherCluster
	case comment.Claim == ours.Claim:
		return byThis
	}
	return byCluster
}

// comment is the one that the volume has on the array.
func (t *task) comment(v *v1alpha1.PoolVolume) pools.Comment {
	claim := pools.Claim{}
	if c := v.Spec.ClaimRef; c != nil {
		claim = pools.Claim{Namespace: c.Namespace, Name: c.Name}
	}
	comment := pools.NewComment(t.Cluster, claim)
	comment.FSType = v.Spec.FSType
	if c := v.Spec.ClaimRef; c != nil {
		comment.ClaimUID, comment.NamespaceUID = string(c.UID), string(c.NamespaceUID)
	}
	return comment
}

// describeVolume returns a volume as callers know it.
func (t *task) describeVolume(v *v1alpha1.PoolVolume) pools.Volume {
	d := pools.Volume{
		ID: v.Name, Size: v.Status.Capacity.Value(), Class: v.Spec.ClassName, Pool: v.Spec.PoolName,
		Block: v.Spec.VolumeMode == v1alpha1.Block, Protocol: pools.Protocol(v.Spec.Protocol), FSType: v.Spec.FSType,
	}
	if v.Spec.Protocol == v1alpha1.Local {
		d.On = t.UUIDOf(v.Spec.PoolName)
	}
	if s := v.Spec.Source; s != nil {
		d.Source = pools.Source{Snapshot: s.Snapshot, Volume: s.Volume}
	}
	return d
}
