package actors

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/volume"
)

// Keys of the attributes of spans.
const (
	spanVolume  = "katbox.volume"
	spanPhase   = "katbox.phase"
	spanPod     = "k8s.pod.uid"
	spanRemoved = "katbox.removed"
)

var errPanicked = errors.New("panicked; see the log")

// do runs an operation. Where something is traced that is a span, below the call
// that has asked for it, from when it did; nobody has asked for a deletion, and it
// is a trace of its own.
func (t *task) do(op *operation) (err error) {
	if t.tracer == nil {
		return op.run(t)
	}
	ctx, options := context.Background(), []trace.SpanStartOption{trace.WithAttributes(attribute.String(spanVolume, string(t.id)))}
	if op.origin == nil {
		_, t.span = t.tracer.Start(ctx, op.name, options...)
	} else {
		asked := trace.WithTimestamp(op.origin.Asked)
		ctx = trace.ContextWithSpanContext(ctx, op.origin.Parent)
		ctx, t.span = t.tracer.Start(ctx, op.name, append(options, asked)...)
		_, wait := t.tracer.Start(ctx, "wait", asked)
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

// describe says in the operation's span what is known of the volume.
func (t *task) describe() {
	if t.record != nil {
		t.span.SetAttributes(attribute.String(spanPod, string(t.record.Pod)), attribute.String(spanPhase, t.record.Phase.String()))
	}
}

// step begins the span of one step of the operation; nil when nothing is traced.
func (t *task) step(name string) trace.Span {
	if t.span == nil {
		return nil
	}
	_, span := t.tracer.Start(trace.ContextWithSpan(context.Background(), t.span), name)
	return span
}

// ended ends a span and returns what came of it. As arguments are evaluated in
// their order, ended(t.step(name), f()) is f in a span.
func ended(span trace.Span, err error) error {
	if span == nil {
		return err
	}
	if err != nil {
		// One span that is not text would have all be lost that are sent with it.
		span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	span.End()
	return err
}

// erasing begins the span of an erasure, which is a trace of its own; nil when
// nothing is traced.
func erasing(tracer trace.Tracer, id volume.ID) trace.Span {
	if tracer == nil {
		return nil
	}
	_, span := tracer.Start(context.Background(), "erase", trace.WithAttributes(attribute.String(spanVolume, string(id))))
	return span
}

// haveErased ends the span of an erasure.
func haveErased(span trace.Span, removed int, err error) {
	if span != nil {
		span.SetAttributes(attribute.Int(spanRemoved, removed))
	}
	_ = ended(span, err)
}
