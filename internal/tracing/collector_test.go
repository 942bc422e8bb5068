package tracing

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// collector takes spans over OTLP, or hangs until the test has ended.
type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	// hang, when not nil, is closed at the end of the test.
	hang   chan struct{}
	called chan struct{}

	mu    sync.Mutex
	taken []*tracepb.ResourceSpans
}

// startCollector returns a collector and its URL.
func startCollector(t *testing.T, c *collector) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.called = make(chan struct{}, 100)
	server := grpc.NewServer()
	coltracepb.RegisterTraceServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if c.hang != nil {
			close(c.hang)
		}
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func (c *collector) Export(_ context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	c.called <- struct{}{}
	if c.hang != nil {
		<-c.hang
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, req.ResourceSpans...)
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// spans returns what was taken so far, by name, and the attributes of whom it is
// from.
func (c *collector) spans() (spans map[string]*tracepb.Span, from map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans, from = map[string]*tracepb.Span{}, map[string]string{}
	for _, resource := range c.taken {
		for _, attribute := range resource.Resource.Attributes {
			from[attribute.Key] = attribute.Value.GetStringValue()
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				spans[span.Name] = span
			}
		}
	}
	return spans, from
}
