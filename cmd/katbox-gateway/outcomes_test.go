package main

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestOutcomes: the gateway watches the pods of all namespaces, and with --outcomes=off it does not, and has no
// metric that would say that it should.
func TestOutcomes(t *testing.T) {
	for mode, watches := range map[string]bool{watchOutcomes: true, noOutcomes: false} {
		t.Run(mode, func(t *testing.T) {
			var core *fake.Clientset
			g := newGateway(t, func(o *options, c *fake.Clientset) { o.outcomes, core = mode, c })
			watched := func() bool {
				for _, action := range core.Actions() {
					if action.Matches("watch", "pods") && action.GetNamespace() == metav1.NamespaceAll {
						return true
					}
				}
				return false
			}
			g.eventually("ready", func() error { return g.probe("/readyz", http.StatusOK, "ok") })
			if watches {
				g.eventually("the pods are watched", func() error {
					if !watched() {
						return errors.New("not yet")
					}
					return nil
				})
			}
			g.stop()
			if err := g.wait(); err != nil {
				t.Error(err)
			}
			if _, there := metricstest.Of(t, g.counted)["katbox_gateway_outcome_source_up"]; watched() != watches || there != watches {
				t.Errorf("pods of all namespaces are watched: %t, the metric is there: %t", watched(), there)
			}
		})
	}
}
