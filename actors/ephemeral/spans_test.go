package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestUntracedCostsNothing: nothing is allocated for spans that nobody wants.
func TestUntracedCostsNothing(t *testing.T) {
	failure := errors.New("no space left")
	op := &operation{name: "publish", run: func(t *task) error {
		if err := t.in("mkdir", func() error { return nil }); err != nil {
			return err
		}
		return t.in("mount", func() error { return failure })
	}}
	untraced := &task{environment: &environment{}, id: testID, record: &volume.Record{ID: testID}}
	n := Node{env: &environment{}}
	ctx := trace.ContextWithSpanContext(t.Context(), aCall())
	allocations := testing.AllocsPerRun(100, func() {
		r := n.routing(ctx, testID)
		op.origin = r.Origin
		if err := untraced.traced(op); !errors.Is(err, failure) {
			t.Error(err)
		}
		eraseSpan(nil, testID)(7, failure)
	})
	if allocations != 0 {
		t.Errorf("%v allocations, want none", allocations)
	}
}

// aCall is the span of a call that is traced.
func aCall() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
}

// notedSpan notes how it ended.
type notedSpan struct {
	noop.Span
	status string
	ended  bool
}

func (s *notedSpan) SetStatus(_ codes.Code, status string) { s.status = status }
func (s *notedSpan) End(...trace.SpanEndOption)            { s.ended = true }

type notingTracer struct {
	noop.Tracer
	span *notedSpan
}

func (t notingTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, t.span
}

// TestPanicEndsItsSpan: the span of an operation ends whatever happens.
func TestPanicEndsItsSpan(t *testing.T) {
	var span notedSpan
	traced := &task{environment: &environment{Config: Config{Tracer: notingTracer{span: &span}}}, id: testID}
	err := actors.Guard(logr.Discard(), func() error {
		return traced.traced(&operation{name: "publish", run: func(*task) error { panic("surprise") }})
	})
	if err == nil || !span.ended || span.status != errPanicked.Error() {
		t.Errorf("%v, span %+v, want an error and that the span has ended with one", err, span)
	}
}

// TestStatusIsText: a file's name may be any bytes, and one span that is not text would have all be
// lost that are sent with it.
func TestStatusIsText(t *testing.T) {
	var span notedSpan
	_ = ended(&span, errors.New("remove a\xff"))
	if !utf8.ValidString(span.status) || !strings.HasPrefix(span.status, "remove a") {
		t.Errorf("status %q, want the error as text", span.status)
	}
}

// BenchmarkPublish publishes volumes over a kernel and records in memory.
func BenchmarkPublish(b *testing.B) {
	for name, tracer := range map[string]trace.Tracer{"untraced": nil, "traced to nowhere": noop.NewTracerProvider().Tracer("")} {
		b.Run(name, func(b *testing.B) {
			node, pod := benchNode(b, tracer)
			ctx := trace.ContextWithSpanContext(context.Background(), aCall())
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				id := volume.ID(fmt.Sprintf("csi-%d", i))
				target := filepath.Join(pod, string(id))
				err := node.Publish(ctx, volume.Publication{ID: id, Pod: testPod, Target: volume.Target{Path: target}})
				if err == nil {
					err = node.Unpublish(ctx, id, target)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
