package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	// For a collector behind https: the image has no certificates of authorities.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// Config is what a Tracing works with. All fields are required.
type Config struct {
	// Endpoint is the collector's URL, such as http://collector:4317.
	Endpoint string
	// NodeID is the node's name in the cluster.
	NodeID string
	// Version is the daemon's.
	Version string
	Log     logr.Logger
}

// CheckEndpoint says why a URL is none of a collector.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL; write it as http://host:4317", endpoint)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("%q is not the URL of a collector; write it as http://host:4317, or https:// for TLS", endpoint)
	case u.User != nil:
		// It would not be sent. Nor is it repeated here: the log is not for passwords.
		return errors.New("the URL of a collector has no user or password; set the variable OTEL_EXPORTER_OTLP_HEADERS")
	case strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "":
		// As in the URL of one that speaks OTLP over HTTP.
		return fmt.Errorf("%q goes on after the host and port, and OTLP over gRPC knows nothing more; write it as http://host:4317", endpoint)
	case u.Scheme == "http" && u.Port() == "":
		return fmt.Errorf("%q has no port, usually 4317", endpoint)
	}
	return nil
}

// Tracing makes spans and sends them to a collector. A nil one makes none.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Start returns at once; whether there is a collector turns out later, and does
// not matter to anybody but the log.
func Start(cfg Config) (*Tracing, error) {
	if err := CheckEndpoint(cfg.Endpoint); err != nil {
		return nil, err
	}
	otel.SetLogger(cfg.Log)
	otel.SetErrorHandler(&rarely{log: cfg.Log})
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
		// What of it can be used is used.
		cfg.Log.Error(err, "the environment describes the source of traces badly")
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, batches(cfg.Log)...), sdktrace.WithResource(from))
	return &Tracing{provider: provider, tracer: provider.Tracer("github.com/katbox/katbox")}, nil
}

// Tracer makes spans; nil when none are wanted.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Stop sends what is left. What has not been taken when ctx ends is lost, which
// the error says.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return errors.Join(errors.New("the last traces are lost"), err)
	}
	return nil
}
