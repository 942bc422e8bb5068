package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
)

// TestHoldNodes: the gateway asks for Nodes with --hold-nodes alone.
func TestHoldNodes(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			g := newGateway(t, func(o *options, _ *fake.Clientset) { o.holdNodes = on })
			asked := func() bool {
				for _, action := range g.cluster.metadata.(*metadatafake.FakeMetadataClient).Actions() {
					if action.Matches("list", "nodes") {
						return true
					}
				}
				return false
			}
			g.eventually("ready", func() error { return g.probe("/readyz", http.StatusOK, "ok") })
			if on {
				g.eventually("the nodes are asked for", func() error {
					if !asked() {
						return errors.New("not yet")
					}
					return nil
				})
			}
			g.stop()
			if err := g.wait(); err != nil {
				t.Error(err)
			}
			if asked() != on {
				t.Errorf("nodes are asked for: %t", asked())
			}
		})
	}
}
