package ephemeral

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/model/volume"
)

// Keys of the attributes of spans.
const (
	spanVolume  = "katbox.volume"
	spanPhase   = "katbox.phase"
	spanPod     = "k8s.pod.uid"
	spanRemoved = "katbox.removed"
)

var errPanicked = errors.New("panicked; see the log")

// traced runs an operation, in a span where something is traced. The span is below that of the call
// that asked for it, and begins when the call did; a deletion is a trace of its own.
func (t *task) traced(op *operation) (err error) {
	if t.Tracer == nil {
		return op.run(t)
	}
	ctx, options := context.Background(), []trace.SpanStartOption{trace.WithAttributes(attribute.String(spanVolume, string(t.id)))}
	if op.origin == nil {
		_, t.span = t.Tracer.Start(ctx, op.name, options...)
	} else {
		asked := trace.WithTimestamp(op.origin.Asked)
		ctx = trace.ContextWithSpanContext(ctx, op.origin.Parent)
		ctx, t.span = t.Tracer.Start(ctx, op.name, append(options, asked)...)
		_, wait := t.Tracer.Start(ctx, "wait", asked)
		wait.End()
	}
	t.describe()
	err = errPanicked
	defer func() {
		t.describe()
		_ = ended(t.span, err)
	}()
	err = op.run(t)
	return err
}

// describe adds what is known of the volume to the operation's span.
func (t *task) describe() {
	if t.record != nil {
		t.span.SetAttributes(attribute.String(spanPod, string(t.record.Pod)), attribute.String(spanPhase, t.record.Phase.String()))
	}
}

// in runs one step of the operation, in a span of its own where something is traced.
func (t *task) in(name string, step func() error) error {
	if t.span == nil {
		return step()
	}
	_, span := t.Tracer.Start(trace.ContextWithSpan(context.Background(), t.span), name)
	return ended(span, step())
}

// ended ends a span and returns the error of what it was about.
func ended(span trace.Span, err error) error {
	if err != nil {
		// The exporter rejects a whole batch if one string is not valid UTF-8.
		span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	span.End()
	return err
}

// eraseSpan begins the span of an erasure, which is a trace of its own. end ends it.
func eraseSpan(tracer trace.Tracer, id volume.ID) (end func(removed int, err error)) {
	if tracer == nil {
		return func(int, error) {}
	}
	_, span := tracer.Start(context.Background(), "erase", trace.WithAttributes(attribute.String(spanVolume, string(id))))
	return func(removed int, err error) {
		span.SetAttributes(attribute.Int(spanRemoved, removed))
		_ = ended(span, err)
	}
}
