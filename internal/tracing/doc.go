// Package tracing sends traces of what the daemon does to an OpenTelemetry
// collector, over OTLP and gRPC.
//
// A call of the kubelet becomes a span, below the span of the caller if the caller
// sends one. The actors make the spans below it with the tracer that they are
// given. A flag says where the collector is; the environment variables of the
// OpenTelemetry specification (OTEL_…) set the rest, as the SDK reads them.
//
// Nothing waits for a collector: spans are sent behind the calls from a queue, and
// what does not fit is dropped. Failures are logged once, then at most every ten
// minutes.
//
// Only this package knows the SDK.
package tracing
