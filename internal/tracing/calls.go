package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Calls makes a span of each call for a volume, below the caller's span if the call names
// one; nil when nothing is traced. Calls without a volume, such as probes, would only hide
// these.
func (t *Tracing) Calls() grpc.UnaryServerInterceptor {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if _, ok := req.(interface{ GetVolumeId() string }); !ok {
			return handler(ctx, req)
		}
		name := strings.TrimPrefix(info.FullMethod, "/")
		service, method, _ := strings.Cut(name, "/")
		sent, _ := metadata.FromIncomingContext(ctx)
		ctx = propagation.TraceContext{}.Extract(ctx, headers(sent))
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", method),
		))
		defer span.End()
		resp, err := handler(ctx, req)
		span.SetAttributes(attribute.Int64("rpc.grpc.status_code", int64(status.Code(err))))
		if err != nil {
			// The exporter rejects a whole batch if one string is not valid UTF-8.
			span.SetStatus(codes.Error, strings.ToValidUTF8(status.Convert(err).Message(), "\uFFFD"))
		}
		return resp, err
	}
}

// headers are the headers of a call. They may name the caller's span.
type headers metadata.MD

// Get returns the first value of a header.
func (h headers) Get(key string) string {
	if values := metadata.MD(h).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set sets a header.
func (h headers) Set(key, value string) { metadata.MD(h).Set(key, value) }

// Keys returns the names of all headers.
func (h headers) Keys() []string {
	keys := make([]string, 0, len(h))
	for key := range h {
		keys = append(keys, key)
	}
	return keys
}
