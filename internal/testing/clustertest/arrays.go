package clustertest

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/katbox/katbox/internal/gateway/arrays"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// PutOnArray gives the cluster a pool on a remote array with one volume, that of a deleted claim. It returns the
// volume's name.
func (c *Cluster) PutOnArray(id, namespace, claim string, since time.Time) string {
	c.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pools.katbox.io/v1alpha1", "kind": "PoolVolume",
		"metadata": map[string]any{"name": id, "creationTimestamp": "2026-11-01T00:00:00Z"},
		"spec": map[string]any{
			"className": "fast", "poolName": "berlin", "size": "10Gi", "volumeMode": "Filesystem", "protocol": "nfs",
			"claimRef": map[string]any{"namespace": namespace, "name": claim, "uid": "uid-of-" + claim, "namespaceUID": "uid-" + namespace},
		},
		"status": map[string]any{
			"state": "Retained", "capacity": "10Gi", "retainedSince": since.UTC().Format(time.RFC3339),
			"retainedUntil": since.Add(24 * time.Hour).UTC().Format(time.RFC3339),
		},
	}}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "pools.katbox.io", Version: "v1alpha1", Resource: "poolvolumes"}: "PoolVolumeList",
	}, object)
	all, err := arrays.New(arrays.Config{Client: client, Log: logr.Discard()})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(func() { cancel(); all.Wait() })
	all.Start(ctx)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, missing := all.Missing(); !missing {
			break
		}
		if time.Now().After(deadline) {
			c.t.Fatal("what is retained on arrays is not known")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrays = all
	return resource.Name(api.Volume{ID: id, Claim: claim, Node: fleet.Arrays})
}
