// Package tracing sends traces to an OpenTelemetry collector, over OTLP and gRPC. A call of the
// kubelet becomes a span, and the actors make the spans below it. A flag says where the collector
// is; the environment variables of the OpenTelemetry specification (OTEL_…) set the rest.
//
// Nothing waits for a collector: spans are sent behind the calls from a queue, and what does not
// fit is dropped. Only this package knows the SDK.
package tracing
