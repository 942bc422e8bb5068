package main

import (
	"net/http"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/katbox/katbox/internal/testing/fakebucket"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestBucketAway: a gateway is ready, and stops, though the bucket of the archive is away: deletions of namespaces would wait for it.
func TestBucketAway(t *testing.T) {
	store := fakebucket.New(t)
	g := newGateway(t, func(o *options, _ *fake.Clientset) {
		o.archive.bucket, o.archive.endpoint, o.archive.region = fakebucket.Name, store.URL, fakebucket.Region
		o.archive.credentials = fakebucket.Credentials(t)
	})
	store.Stop()
	g.eventually("ready", func() error { return g.probe("/readyz", http.StatusOK, "ok") })
	metricstest.Of(t, g.counted).Want(t, "with a bucket", metricstest.Values{`katbox_gateway_archive_uploads_total{outcome="signed"}`: 0})
	g.stop()
	if err := g.wait(); err != nil {
		t.Error(err)
	}
}

// TestNoCredentials: a directory without credentials is an error at the start, which names the flag.
func TestNoCredentials(t *testing.T) {
	g := newGateway(t, func(o *options, _ *fake.Clientset) {
		o.archive.bucket, o.archive.credentials = fakebucket.Name, t.TempDir()
	})
	if err := g.wait(); err == nil {
		t.Error("it runs without credentials")
	}
}
