// Package tracingtest contains a collector of traces for tests.
package tracingtest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector receives spans over OTLP, or hangs until the test has ended.
type Collector struct {
	coltracepb.UnimplementedTraceServiceServer
	called chan struct{}
	hang   chan struct{} // closed at the end of the test; nil for one that answers

	mu    sync.Mutex
	taken []*tracepb.ResourceSpans
}

// Start returns a collector, which ends with the test, and its URL.
func Start(t testing.TB) (*Collector, string) {
	t.Helper()
	return start(t, nil)
}

// StartHanging is Start with a collector that does not answer before the end.
func StartHanging(t testing.TB) (*Collector, string) {
	t.Helper()
	return start(t, make(chan struct{}))
}

func start(t testing.TB, hang chan struct{}) (*Collector, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{called: make(chan struct{}, 1), hang: hang}
	server := grpc.NewServer()
	coltracepb.RegisterTraceServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if hang != nil {
			close(hang)
		}
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return c, "http://" + l.Addr().String()
}

// Export receives spans.
func (c *Collector) Export(_ context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	select {
	case c.called <- struct{}{}:
	default:
	}
	if c.hang != nil {
		<-c.hang
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, req.ResourceSpans...)
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// Called delivers a value when spans have come, taken or not.
func (c *Collector) Called() <-chan struct{} { return c.called }

// Taken returns the spans that were taken so far, by their source.
func (c *Collector) Taken() []*tracepb.ResourceSpans {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.taken)
}

// Spans returns all spans that were taken so far.
func (c *Collector) Spans() []*tracepb.Span {
	var spans []*tracepb.Span
	for _, resource := range c.Taken() {
		for _, scope := range resource.ScopeSpans {
			spans = append(spans, scope.Spans...)
		}
	}
	return spans
}
