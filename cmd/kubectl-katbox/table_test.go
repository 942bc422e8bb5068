package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// TestExpires: a list says of a volume whose node is gone that the archive has it.
func TestExpires(t *testing.T) {
	now := time.Now()
	end := metav1.NewTime(now.Add(48 * time.Hour))
	for phase, want := range map[string]string{"Retained": "in 2d", api.PhaseArchived: "in 2d (archived)"} {
		v := &resource.RetainedVolume{Status: resource.Status{Phase: phase, ExpiresAt: &end}}
		if got := expires(v, now); got != want {
			t.Errorf("%s: it expires %q, want %q", phase, got, want)
		}
	}
}
