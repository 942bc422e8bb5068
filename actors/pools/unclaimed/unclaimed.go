package unclaimed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Kubernetes asks for the deletion of a volume by its PersistentVolume. A claim may be deleted before there is one.
// external-provisioner goes on then, makes it, and deletes both; but it remembers that in memory alone. If it ends in
// between, no program asks for the deletion of the volume (kubernetes-csi/external-provisioner, issue 486).
//
// Such a volume looks like one whose PersistentVolume had the policy Retain, and was deleted by a person who wants to keep
// the data. So the sweep deletes nothing: it tells of them, every day.

const (
	// Name is the name of the single actor that looks for such volumes.
	Name = "unclaimed"
	// sweepFirst is how long after the start of a controller it looks first, or after a look that failed; sweepEvery
	// is the time from one look to the next.
	sweepFirst = time.Hour
	sweepEvery = 24 * time.Hour
	// unclaimedAge is how old a volume is at least: a new one may get its PersistentVolume yet.
	unclaimedAge = time.Hour
	// unclaimedPause is between two events. What records them drops those that come faster than the API server takes
	// them, and has those of all other volumes, too.
	unclaimedPause = 20 * time.Millisecond
	// mostNamed bounds the names in a line of the log.
	mostNamed = 10
)

// unclaimed looks for volumes that have neither a claim nor a PersistentVolume.
type unclaimed struct {
	*env.Environment
	timer *time.Timer
}

type (
	// sweepDue says that it is time to look.
	sweepDue struct{}
	// sweepEnded says what came of a look.
	sweepEnded struct{ err error }
)

// Props describes the actor.
func Props(e *env.Environment) *actor.Props {
	u := &unclaimed{Environment: e}
	return actor.PropsFromFunc(u.Receive, actor.WithReceiverMiddleware(actors.Recovering(e.Log)), actors.AtOnce)
}

func (u *unclaimed) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		u.after(c, sweepFirst)
	case *actor.Stopping, *actor.Restarting:
		actors.StopTimer(u.timer)
	case *sweepDue:
		u.begin(c)
	case *sweepEnded:
		if m.err == nil {
			u.after(c, sweepEvery)
			return
		}
		if u.Context.Err() == nil {
			u.Log.Info("volumes without a claim cannot be looked for yet", "cause", m.err.Error())
		}
		u.after(c, sweepFirst)
	default:
		actors.IgnoreLifecycle(u.Log, c)
	}
}

func (u *unclaimed) after(c actor.Context, wait time.Duration) {
	actors.StopTimer(u.timer)
	root, self := c.ActorSystem().Root, c.Self()
	u.timer = time.AfterFunc(wait, func() { root.Send(self, &sweepDue{}) })
}

// begin lets a worker look.
func (u *unclaimed) begin(c actor.Context) {
	self := c.Self()
	err := actors.InWorker(u.System, func() error {
		ctx, cancel := context.WithTimeout(u.Context, env.LongestOperation)
		defer cancel()
		return u.sweep(ctx)
	}, func(err error) { u.Root.Send(self, &sweepEnded{err}) })
	if err != nil { // it is stopping
		u.after(c, sweepFirst)
	}
}

// sweep looks for volumes that have neither a claim nor a PersistentVolume, and tells of them.
func (u *unclaimed) sweep(ctx context.Context) error {
	left, err := u.unclaimedVolumes(ctx)
	if err != nil {
		return err
	}
	u.Metrics.Unclaimed(len(left))
	return u.tellUnclaimed(left)
}

// unclaimedVolumes reads the volumes first. What belongs to them was there before, or is not needed any more.
func (u *unclaimed) unclaimedVolumes(ctx context.Context) ([]*v1alpha1.PoolVolume, error) {
	left := map[string]string{}
	for last := ""; ; {
		page, err := actors.Ask(ctx, u.Root, u.Supervisor(), &poolmessages.ListClaimed{After: last})
		if err != nil {
			return nil, err
		}
		maps.Copy(left, page.ByClaim)
		if last = page.Last; last == "" {
			break
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	claims := func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(poolmessages.PersistentVolumeClaimKind + "List"))
		return list
	}
	hasClaim := func(o client.Object) { delete(left, string(o.GetUID())) }
	if err := env.EachOf(ctx, u.Resources, poolmessages.PersistentVolumeClaimKind, claims, hasClaim); err != nil || len(left) == 0 {
		return nil, err
	}
	named := map[string]bool{}
	for _, name := range left {
		named[name] = false
	}
	volumes := func() client.ObjectList { return &corev1.PersistentVolumeList{} }
	if err := env.EachOf(ctx, u.Resources, "PersistentVolume", volumes, func(o client.Object) {
		// Also one of another driver, or one that is about to go: it has a name, and people find the volume by that.
		if pv, ok := o.(*corev1.PersistentVolume); ok && pv.Spec.CSI != nil {
			if _, ours := named[pv.Spec.CSI.VolumeHandle]; ours {
				named[pv.Spec.CSI.VolumeHandle] = true
			}
		}
	}); err != nil {
		return nil, err
	}
	maps.DeleteFunc(named, func(_ string, has bool) bool { return has })
	return u.olderOf(ctx, named)
}

// olderOf reads those volumes of these names that are Ready and old enough. It lists all volumes, since there may be too many
// to read one by one.
func (u *unclaimed) olderOf(ctx context.Context, names map[string]bool) ([]*v1alpha1.PoolVolume, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var left []*v1alpha1.PoolVolume
	empty := func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }
	err := env.EachOf(ctx, u.Resources, "PoolVolume", empty, func(o client.Object) {
		v, ok := o.(*v1alpha1.PoolVolume)
		if _, named := names[o.GetName()]; !ok || !named || v.DeletionTimestamp != nil || v.Status.State != v1alpha1.VolumeReady ||
			time.Since(v.CreationTimestamp.Time) < unclaimedAge {
			return
		}
		// What an event needs, and not the page that it was on.
		of := &v1alpha1.PoolVolume{Spec: v1alpha1.PoolVolumeSpec{PoolName: v.Spec.PoolName}}
		of.Name, of.UID, of.ResourceVersion = v.Name, v.UID, v.ResourceVersion
		left = append(left, of)
	})
	slices.SortFunc(left, func(a, b *v1alpha1.PoolVolume) int { return cmp.Compare(a.Name, b.Name) })
	return left, err
}

// tellUnclaimed tells of volumes that neither a claim nor a PersistentVolume has.
func (u *unclaimed) tellUnclaimed(left []*v1alpha1.PoolVolume) error {
	if len(left) == 0 {
		return nil
	}
	var some []string
	for _, v := range left[:min(len(left), mostNamed)] {
		some = append(some, v.Name)
	}
	u.Log.Info("volumes have neither a claim nor a PersistentVolume; their events say what to do", "count", len(left), "volumes", some)
	return u.warnUnclaimed(left)
}

// warnUnclaimed makes an event of each volume, one after the other.
func (u *unclaimed) warnUnclaimed(left []*v1alpha1.PoolVolume) error {
	for _, v := range left {
		if err := retry.Pause(u.Context, unclaimedPause); err != nil {
			return err
		}
		u.Resources.Events.Event(v, corev1.EventTypeWarning, "Unclaimed", fmt.Sprintf("its claim is gone and no PersistentVolume names it, "+
			"so Kubernetes does not ask for its deletion; to delete it on %s, with its data, delete PoolVolume %s; to use it, make a "+
			"PersistentVolume with the volumeHandle %[2]s",
			u.Ground(v.Spec.PoolName), v.Name))
	}
	return nil
}
