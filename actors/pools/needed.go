package pools

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
)

// needed returns [pools.ErrInUse] while a PersistentVolume names the volume of a resource that a person has
// deleted: the data of a claim go with the claim, and not with a resource. A deletion that CSI asks for is not
// held up, because Kubernetes has decided before. One that was interrupted is not either: its PersistentVolume
// is Released, and to be deleted.
func (t *task) needed(ctx context.Context, v *v1alpha1.PoolVolume) error {
	name, err := t.namers.of(ctx, t.environment, v)
	if err != nil || name == "" {
		return err
	}
	return problemf(pools.ErrInUse, "the PersistentVolume %s names volume %s; delete its claim, or the PersistentVolume if the claim is gone, "+
		"and what is on the array goes then", name, v.Name)
}

// namers knows which PersistentVolumes name volumes. A provisioned one has the name of its volume. One that a
// person has made may have any, and only a list tells.
type namers struct {
	mu sync.Mutex
	// listed is when the last list began; byHandle has the PersistentVolumes of that list, by volume.
	listed   time.Time
	byHandle map[string]string
}

// of returns the PersistentVolume that needs a volume; empty where there is none.
func (n *namers) of(ctx context.Context, e *environment, v *v1alpha1.PoolVolume) (string, error) {
	asked := time.Now()
	for _, name := range []string{v.Name, v.Spec.RequestName, n.known(v.Name)} {
		if name == "" {
			continue
		}
		var pv corev1.PersistentVolume
		err := e.Resources.Get(ctx, client.ObjectKey{Name: name}, &pv)
		if client.IgnoreNotFound(err) != nil {
			return "", kubernetesError(err, "read the PersistentVolume "+name)
		}
		if err == nil && e.needs(&pv) == v.Name {
			return name, nil
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.listed.After(asked) { // else a list that serves this question too was made while it waited
		if err := n.list(ctx, e); err != nil {
			return "", err
		}
	}
	return n.byHandle[v.Name], nil
}

func (n *namers) known(volume string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byHandle[volume]
}

// list asks for all PersistentVolumes. mu is held.
func (n *namers) list(ctx context.Context, e *environment) error {
	began, byHandle := time.Now(), map[string]string{}
	page := client.ListOptions{Limit: 500}
	for {
		var list corev1.PersistentVolumeList
		if err := e.Resources.List(ctx, &list, &page); err != nil {
			return kubernetesError(err, "list the PersistentVolumes")
		}
		for i := range list.Items {
			if handle := e.needs(&list.Items[i]); handle != "" {
				byHandle[handle] = list.Items[i].Name
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	n.listed, n.byHandle = began, byHandle
	return nil
}

// needs returns the volume that a PersistentVolume needs: its own, unless its claim is gone and it is to be
// deleted with its volume.
func (e *environment) needs(pv *corev1.PersistentVolume) string {
	source := pv.Spec.CSI
	switch {
	case source == nil || source.Driver != e.Driver:
		return ""
	case pv.Status.Phase == corev1.VolumeReleased && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return ""
	}
	return source.VolumeHandle
}
