package main

import (
	"encoding/hex"
	"maps"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/metadata"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/tracingtest"
)

// collector takes the spans of a daemon.
type collector struct{ *tracingtest.Collector }

// startCollector returns a collector, made by one of the functions that start one, and the
// flags with which a daemon sends its traces there.
func startCollector(t *testing.T, start func(testing.TB) (*tracingtest.Collector, string)) (collector, []string) {
	t.Helper()
	roottest.Need(t)
	c, url := start(t)
	return collector{c}, []string{"--otlp-endpoint", url}
}

// below returns the spans below another one by name, and as "name name" a second one of the
// same name.
func (c collector) below(trace string, parent []byte) map[string]*tracepb.Span {
	spans := map[string]*tracepb.Span{}
	for _, span := range c.Spans() {
		if string(span.ParentSpanId) != string(parent) || trace != "" && hex.EncodeToString(span.TraceId) != trace {
			continue
		}
		name := span.Name
		for spans[name] != nil {
			name += " " + span.Name
		}
		spans[name] = span
	}
	return spans
}

// want returns the span of a name below another one and checks that it has the steps below
// it, and begins before and ends after them.
func (c collector) want(t *testing.T, trace string, parent []byte, name string, steps ...string) *tracepb.Span {
	t.Helper()
	span := c.below(trace, parent)[name]
	if span == nil {
		t.Fatalf("no span %q below %x of trace %q among %v", name, parent, trace, c.Spans())
	}
	below := c.below("", span.SpanId)
	for _, name := range steps {
		step := below[name]
		if step == nil {
			t.Errorf("no span %q below %q, but %v", name, span.Name, below)
			continue
		}
		if step.StartTimeUnixNano < span.StartTimeUnixNano || step.EndTimeUnixNano > span.EndTimeUnixNano ||
			string(step.TraceId) != string(span.TraceId) {
			t.Errorf("%v is not within %v", step, span)
		}
	}
	return span
}

// TestTraces: the spans of a publish, an unpublish and a deletion.
func TestTraces(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	c, flags := startCollector(t, tracingtest.Start)
	d := newDaemon(t, append(flags, "--afterlifespan", "1s")...)
	d.start()
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+trace+"-"+caller+"-01")
	if _, err := d.node.NodePublishVolume(ctx, d.request(testPod, volumeID(1))); err != nil {
		t.Fatal(err)
	}
	d.unpublish(testPod, volumeID(1))
	d.eventually("deleted", d.gone(testPod, volumeID(1)))
	d.eventually("erased", func() bool { return c.below("", nil)["erase"] != nil })
	if code := d.signal(syscall.SIGTERM); code != 0 || d.logged(`"error"`) {
		t.Errorf("exit code %d\n%s", code, d.stdout)
	}

	parent, err := hex.DecodeString(caller)
	if err != nil {
		t.Fatal(err)
	}
	call := c.want(t, trace, parent, "csi.v1.Node/NodePublishVolume", "publish")
	publish := c.want(t, trace, call.SpanId, "publish", "wait", "record", "mkdir", "mount")
	got, want := map[string]string{}, map[string]string{"katbox.volume": volumeID(1), "k8s.pod.uid": testPod,
		"katbox.phase": volume.Published.String()}
	for _, attribute := range publish.Attributes {
		got[attribute.Key] = attribute.Value.GetStringValue()
	}
	if !maps.Equal(got, want) {
		t.Errorf("the publish says %v, want %v", got, want)
	}
	call = c.want(t, "", nil, "csi.v1.Node/NodeUnpublishVolume", "unpublish")
	c.want(t, "", call.SpanId, "unpublish", "wait", "unmount", "record")
	c.want(t, "", nil, "delete", "read the mount table", "record", "move to the trash", "forget")
	if len(c.below("", nil)) != 3 {
		t.Errorf("traces %v, want those of an unpublish, a deletion and an erasure", c.below("", nil))
	}
}

// TestCollectorThatHangs: neither calls nor the stop wait for it.
func TestCollectorThatHangs(t *testing.T) {
	const never = "3600000"
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", never)
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", never)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	_, flags := startCollector(t, tracingtest.StartHanging)
	d := newDaemon(t, flags...)
	d.start()
	for range 20 {
		d.publish(testPod, volumeID(1))
		if _, err := d.node.NodeGetVolumeStats(t.Context(),
			&csi.NodeGetVolumeStatsRequest{VolumeId: volumeID(1), VolumePath: d.target(testPod)}); err != nil {
			t.Fatal(err)
		}
		d.unpublish(testPod, volumeID(1))
	}
	if code := d.signal(syscall.SIGTERM); code != 0 || !d.logged("stopped tracing", "lost") {
		t.Errorf("exit code %d, want 0 and that the last traces are lost\n%s", code, d.stdout)
	}
}

// TestCollectorThatIsNotThere: it does not fill the log.
func TestCollectorThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	d := newDaemon(t, "--otlp-endpoint", "http://"+l.Addr().String(), "--log-level", "info")
	d.start()
	for range 50 {
		d.publish(testPod, volumeID(1))
		d.unpublish(testPod, volumeID(1))
	}
	code := d.signal(syscall.SIGTERM)
	log := d.stdout.String()
	if lines := strings.Count(log, "\n") - strings.Count(log, `"msg":"retained"`); code != 0 ||
		!d.logged("cannot send traces") || lines > 12 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %d lines\n%s%s", code, lines, d.stdout, d.stderr)
	}
}
