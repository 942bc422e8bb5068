package tracing

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/testing/tracingtest"
)

func startTracing(t *testing.T, endpoint string) *Tracing {
	t.Helper()
	traces, err := Start(Config{Endpoint: endpoint, NodeID: "node-1", Version: "1.2.3", Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

// request is a request for a volume.
type request struct{}

func (request) GetVolumeId() string { return "csi-1" }

func call(ctx context.Context, traces *Tracing, req any, handler func(ctx context.Context) error) error {
	_, err := traces.Calls()(ctx, req, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Node/NodePublishVolume"},
		func(ctx context.Context, _ any) (any, error) {
			return nil, handler(ctx)
		})
	return err
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// calledBy returns a call's context with the headers of a caller that traces.
func calledBy(t *testing.T, flags string) context.Context {
	return metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", "00-"+callersTrace+"-"+callersSpan+"-"+flags))
}

// byName returns the spans that were taken so far, and the attributes of their source.
func byName(c *tracingtest.Collector) (spans map[string]*tracepb.Span, from map[string]string) {
	spans, from = map[string]*tracepb.Span{}, map[string]string{}
	for _, resource := range c.Taken() {
		for _, attribute := range resource.Resource.Attributes {
			from[attribute.Key] = attribute.Value.GetStringValue()
		}
	}
	for _, span := range c.Spans() {
		spans[span.Name] = span
	}
	return spans, from
}

func TestSpansOfACall(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=blue")
	c, url := tracingtest.Start(t)
	traces := startTracing(t, url)
	refused := status.Error(codes.Aborted, "busy")
	err := call(calledBy(t, "01"), traces, request{}, func(ctx context.Context) error {
		_, span := traces.Tracer().Start(ctx, "below")
		span.End()
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("%v, want the handler's error", err)
	}
	// A probe makes no span.
	if err := call(t.Context(), traces, struct{}{}, func(ctx context.Context) error {
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Error("a call without a volume is traced")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := traces.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans, from := byName(c)
	called, below := spans["csi.v1.Node/NodePublishVolume"], spans["below"]
	if called == nil || below == nil || len(spans) != 2 {
		t.Fatalf("spans %v", spans)
	}
	if hex.EncodeToString(called.TraceId) != callersTrace || hex.EncodeToString(called.ParentSpanId) != callersSpan {
		t.Errorf("the call is not below the caller's span: %v", called)
	}
	if !slices.Equal(below.ParentSpanId, called.SpanId) {
		t.Errorf("what is below the call is elsewhere: %v", below)
	}
	if called.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || called.Status.GetMessage() != "busy" ||
		called.Kind != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("the call's status %v and kind %v", called.Status, called.Kind)
	}
	if from["service.name"] != "katbox" || from["service.version"] != "1.2.3" || from["k8s.node.name"] != "node-1" ||
		from["k8s.cluster.name"] != "blue" {
		t.Errorf("spans are from %v", from)
	}
}

// TestErrorThatIsNotText: an error may name a file, and the name may be any bytes. The spans
// in the same batch are not lost.
func TestErrorThatIsNotText(t *testing.T) {
	c, url := tracingtest.Start(t)
	traces := startTracing(t, url)
	_ = call(t.Context(), traces, request{}, func(context.Context) error { return errors.New("remove a\xff") })
	if err := traces.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if spans := c.Spans(); len(spans) != 1 {
		t.Errorf("sent %v, want one span", spans)
	}
}

// TestCallerDecides: a span is not sent if the caller does not sample.
func TestCallerDecides(t *testing.T) {
	c, url := tracingtest.Start(t)
	traces := startTracing(t, url)
	if err := call(calledBy(t, "00"), traces, request{}, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := traces.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if spans := c.Spans(); len(spans) > 0 {
		t.Errorf("sent %v", spans)
	}
}

// TestCollectorThatHangs: it delays neither calls, no matter how many, nor the stop. The
// collector answers only after the test.
func TestCollectorThatHangs(t *testing.T) {
	const never = "3600000"
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", never)
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", never)
	c, url := tracingtest.StartHanging(t)
	traces := startTracing(t, url)
	for range 5000 {
		if err := call(t.Context(), traces, request{}, func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	<-c.Called()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := traces.Stop(ctx); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("stop: %v, want that traces are lost", err)
	}
}

func TestCollectorThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	traces := startTracing(t, "http://"+l.Addr().String())
	for range 5000 {
		if err := call(t.Context(), traces, request{}, func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := traces.Stop(ctx); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("stop: %v, want that traces are lost", err)
	}
}

func TestFailuresAreLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		r := rateLimited{log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
		for range 25 * 60 {
			r.Handle(errors.New("no collector"))
			time.Sleep(time.Second)
		}
		if len(lines) != 3 || !strings.Contains(lines[1], `"failuresSinceTheLastLine"=599`) {
			t.Errorf("25 minutes of failures are logged as %q", lines)
		}
	})
}

func TestNoTracing(t *testing.T) {
	var traces *Tracing
	if traces.Tracer() != nil || traces.Calls() != nil || traces.Stop(t.Context()) != nil {
		t.Error("without a collector there is something to do")
	}
}

func TestCheckEndpoint(t *testing.T) {
	for _, endpoint := range []string{"http://collector:4317", "https://collector", "http://[::1]:4317", "http://collector:4317/"} {
		if err := CheckEndpoint(endpoint); err != nil {
			t.Error(err)
		}
	}
	for _, endpoint := range []string{
		"", "collector:4317", "http://", "http://:4317", "grpc://collector:4317", "http://%", "unix:///x",
		"http://collector", "http://collector:4318/v1/traces", "http://collector:4317?tenant=a", "http://collector:4317#a",
		"http://me:secret@collector:4317",
	} {
		if err := CheckEndpoint(endpoint); err == nil {
			t.Errorf("%q is accepted", endpoint)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the password is told: %v", err)
		}
		if _, err := Start(Config{Endpoint: endpoint}); err == nil {
			t.Errorf("%q starts", endpoint)
		}
	}
}
