package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/duration"

	// For a collector behind https: the image has no certificates of authorities.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// Config is what a Tracing works with. All fields are required.
type Config struct {
	Endpoint string // the collector's URL, such as http://collector:4317
	NodeID   string // the node's name in the cluster
	Version  string // of the daemon
	Log      logr.Logger
}

// CheckEndpoint returns why a URL is not that of a collector.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL; write it as http://host:4317", endpoint)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("%q is not the URL of a collector; write it as http://host:4317, or https:// for TLS", endpoint)
	case u.User != nil:
		// It would not be sent. The error does not repeat it: the log is not for passwords.
		return errors.New("the URL of a collector has no user or password; set the variable OTEL_EXPORTER_OTLP_HEADERS")
	case strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "":
		// Such as the URL of a collector that speaks OTLP over HTTP.
		return fmt.Errorf("%q has more than a host and port, which OTLP over gRPC does not use; write it as http://host:4317", endpoint)
	case u.Scheme == "http" && u.Port() == "":
		return fmt.Errorf("%q has no port, usually 4317", endpoint)
	}
	return nil
}

// checkEnvironment returns which variable of the environment the SDK would not survive: it panics
// at a number below 0, and with a delay of 0 a processor never rests. A span takes about a
// kilobyte.
func checkEnvironment() error {
	const mostSpans, longestDelay = 1 << 16, time.Hour
	for _, variable := range []struct {
		name string
		most int64
	}{
		{"OTEL_BSP_MAX_QUEUE_SIZE", mostSpans},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", mostSpans},
		{"OTEL_BSP_SCHEDULE_DELAY", longestDelay.Milliseconds()},
	} {
		text := os.Getenv(variable.name)
		number, err := strconv.ParseInt(text, 10, 64)
		if text != "" && (err != nil || number < 1 || number > variable.most) {
			return fmt.Errorf("the environment variable %s is %q; set it to a number from 1 to %d, or unset it", variable.name, text, variable.most)
		}
	}
	return nil
}

// Tracing makes spans and sends them to a collector. A nil one makes none.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Start returns at once. A collector that does not answer is logged later and has no other effect.
func Start(cfg Config) (*Tracing, error) {
	if err := CheckEndpoint(cfg.Endpoint); err != nil {
		return nil, err
	}
	if err := checkEnvironment(); err != nil {
		return nil, err
	}
	otel.SetLogger(cfg.Log)
	otel.SetErrorHandler(&rateLimited{log: cfg.Log})
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpointURL(cfg.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("trace to %s: %w", cfg.Endpoint, err)
	}
	from, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "katbox"),
		attribute.String("service.version", cfg.Version),
		attribute.String("k8s.node.name", cfg.NodeID),
	), resource.WithFromEnv())
	if err != nil {
		// The usable part is used.
		cfg.Log.Error(err, "a part of OTEL_RESOURCE_ATTRIBUTES cannot be used")
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))
	return &Tracing{provider: provider, tracer: provider.Tracer("github.com/katbox/katbox")}, nil
}

// Tracer makes spans; nil when nothing is traced.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Calls makes a span of each call for a volume, below the caller's span if the call names one; nil
// when nothing is traced. Calls without a volume, such as probes, would only hide these.
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
		sent, w3c := propagation.MapCarrier{}, propagation.TraceContext{}
		for _, header := range w3c.Fields() {
			if values := metadata.ValueFromIncomingContext(ctx, header); len(values) > 0 {
				sent[header] = values[0]
			}
		}
		ctx = w3c.Extract(ctx, sent)
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

// Stop sends the spans that are left. The error says whether some were lost when ctx ended.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return errors.Join(errors.New("the last traces are lost"), err)
	}
	return nil
}

// quietTime is the least time between two log lines about the collector.
const quietTime = 10 * time.Minute

// rateLimited logs that traces cannot be sent. Each batch of spans may fail, for days.
type rateLimited struct {
	log logr.Logger

	mu     sync.Mutex
	logged time.Time
	// since counts the failures since then.
	since int
}

// Handle receives the errors of the SDK.
func (r *rateLimited) Handle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.logged.IsZero() && now.Sub(r.logged) < quietTime {
		r.since++
		return
	}
	r.log.Error(err, "cannot send traces; nothing else waits for that",
		"failuresSinceTheLastLine", r.since, "notAgainFor", duration.Format(quietTime))
	r.logged, r.since = now, 0
}
