package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestPodEvents: the gateway writes an event on a pod that has failed, of the driver that it was told, and with
// --pod-events=false it asks for none.
func TestPodEvents(t *testing.T) {
	failed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x", UID: "u1", CreationTimestamp: metav1.Now()},
		Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{
			Name: "scratch", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "other.example.com"}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodFailed},
	}
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			var core *fake.Clientset
			g := newGateway(t, func(o *options, c *fake.Clientset) {
				o.outcomes, o.podEvents, o.driverName, core = watchOutcomes, on, "other.example.com", c
				if err := c.Tracker().Add(failed.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			})
			g.eventually("ready", func() error { return g.probe("/readyz", http.StatusOK, "ok") })
			if on {
				g.eventually("the event is there", func() error {
					event, err := core.CoreV1().Events("ci").Get(t.Context(), "katbox-u1", metav1.GetOptions{})
					if err == nil && (event.InvolvedObject.Name != "x" || !strings.Contains(event.Message, "kubectl katbox ls -n ci pod/x;")) {
						err = fmt.Errorf("the event is %+v", event)
					}
					return err
				})
			} else {
				g.eventually("the pods have been listed", func() error {
					if metricstest.Of(t, g.counted)["katbox_gateway_outcome_source_up"] != 1 {
						return errors.New("not yet")
					}
					return nil
				})
			}
			g.stop()
			if err := g.wait(); err != nil {
				t.Error(err)
			}
			wrote := false
			for _, action := range core.Actions() {
				wrote = wrote || action.Matches("create", "events")
			}
			if wrote != on {
				t.Errorf("it has written an event: %t", wrote)
			}
		})
	}
}
