package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/controller/poolmetrics"
	"github.com/katbox/katbox/internal/controller/watch"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// kinds are the objects that are watched. Of nodes and claims only the metadata are read, as Secrets are read
// when they are needed.
var kinds = []watch.Kind{
	{Name: poolmessages.PoolClassKind, List: func() client.ObjectList { return &v1alpha1.PoolClassList{} }},
	{Name: poolmessages.PoolKind, List: func() client.ObjectList { return &v1alpha1.PoolList{} }},
	{Name: poolmessages.PoolVolumeKind, List: func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }},
	{Name: poolmessages.PoolSnapshotKind, List: func() client.ObjectList { return &v1alpha1.PoolSnapshotList{} }},
	{Name: poolmessages.PoolAttachmentKind, List: func() client.ObjectList { return &v1alpha1.PoolAttachmentList{} }},
	{Name: poolmessages.PoolNodeKind, List: func() client.ObjectList { return &v1alpha1.PoolNodeList{} }},
	{Name: poolmessages.NodeKind, List: metadata("NodeList")},
	// Tenants make them, each with up to 1.5 MiB of metadata.
	{Name: poolmessages.PersistentVolumeClaimKind, List: metadata("PersistentVolumeClaimList"), Page: 50},
	{Name: poolmessages.PersistentVolumeKind, List: func() client.ObjectList { return &corev1.PersistentVolumeList{} }},
}

// metadata returns an empty list of a core kind, of which the metadata alone are read.
func metadata(kind string) func() client.ObjectList {
	return func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		return list
	}
}

// resources passes objects on to the actors, and shows the states of the pools.
type resources struct {
	watch.Sink
	counted *poolmetrics.Metrics
}

func (r resources) Seen(kind string, object client.Object) {
	if pool, ok := object.(*v1alpha1.Pool); ok {
		r.counted.Pool(pool)
	}
	r.Sink.Seen(kind, object)
}

func (r resources) Gone(kind, name string) {
	if kind == poolmessages.PoolKind {
		r.counted.PoolGone(name)
	}
	r.Sink.Gone(kind, name)
}
