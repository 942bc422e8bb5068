package ephemeral

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/scratch"
)

// benchNode starts a node over a kernel and records in memory, and returns the directory of the one
// pod.
func benchNode(b *testing.B, tracer trace.Tracer) (*Node, string) {
	b.Helper()
	root := b.TempDir()
	dir, err := scratch.Open(filepath.Join(root, "work"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dir.Close() })
	pods := filepath.Join(root, "pods")
	pod := filepath.Join(pods, string(testPod))
	if err := os.MkdirAll(pod, 0o750); err != nil {
		b.Fatal(err)
	}
	disk := &fakeDisk{free: 1000, total: 1000}
	node, err := start(Config{
		Mounter: newFakeMounter(), Bindings: func() ([]mount.Binding, error) { return nil, nil }, Scratch: dir,
		Space: disk.space, SpaceAfterErase: disk.spaceAfterErase, Records: newFakeRecords(),
		Known: func(func(volume.Record)) error { return nil }, PodsDir: pods, Metrics: metrics.New("test", ""),
		Lifespan: time.Hour, PressureInterval: time.Hour, OrphanGrace: time.Hour, EraseParallel: 1, Log: logr.Discard(), Tracer: tracer,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = node.Stop(context.Background()) })
	return node, pod
}

// BenchmarkAsk asks a volume actor through the supervisor for something that it refuses without a
// system call: a published volume for another pod. What is left is the way there and back, with the
// goroutine of an operation.
func BenchmarkAsk(b *testing.B) {
	node, pod := benchNode(b, nil)
	p := volume.Publication{ID: testID, Pod: testPod, Target: volume.Target{Path: filepath.Join(pod, "mount")}}
	if err := node.Publish(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	p.Pod = "another"
	b.ReportAllocs()
	for b.Loop() {
		if err := node.Publish(b.Context(), p); !errors.Is(err, volume.ErrConflict) {
			b.Fatal(err)
		}
	}
}
