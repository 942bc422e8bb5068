// Package tracing sends traces of what the daemon does to an OpenTelemetry
// collector, over OTLP and gRPC.
//
// A call of the kubelet becomes a span, below the span of the caller where that
// sends one. The actors make the spans below it by the tracer that they are
// given. What is set by flags is where the collector is; for the rest there are
// the environment variables of the OpenTelemetry specification (OTEL_…), as the
// SDK reads them.
//
// Nobody waits for a collector: spans are sent behind the calls, a queue takes
// them meanwhile, and what does not fit is dropped. Its failures are logged once,
// and then every ten minutes at most.
//
// This package alone knows the SDK.
package tracing
