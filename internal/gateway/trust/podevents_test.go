package trust_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/gateway/trust"
)

// TestNoPodEvents: by the annotation, as it is now, and by its one value.
func TestNoPodEvents(t *testing.T) {
	client := newMetadata()
	tracker := client.Tracker()
	annotated := func(value string) *metav1.PartialObjectMetadata {
		n := namespace("ci", "1")
		n.Annotations[trust.PodEvents] = value
		return n
	}
	if err := tracker.Create(resource, annotated("false"), ""); err != nil {
		t.Fatal(err)
	}
	n := newNamespaces(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	defer n.Wait()
	defer cancel()
	n.Start(ctx)
	eventually(t, "the namespaces are watched", watched(client))
	eventually(t, "the namespace wants none", func() bool { return n.Synced() && n.NoPodEvents("ci") })
	if n.NoPodEvents("other") {
		t.Error("a namespace that there is not wants none")
	}
	if err := tracker.Update(resource, annotated("true"), ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it wants them", func() bool { return !n.NoPodEvents("ci") })
}
