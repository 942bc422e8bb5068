package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/ops"
	"github.com/katbox/katbox/internal/tracing"
)

const (
	// answersTimeout bounds how long answers over HTTP are waited for when all else
	// has stopped, tracesTimeout how long the last traces are.
	answersTimeout = time.Second
	tracesTimeout  = time.Second
)

// startOps has the daemon say how it is, before it does anything else.
func startOps(o options, counted *metrics.Metrics, log logr.Logger) (*ops.Server, error) {
	status, err := ops.Start(ops.Config{Endpoint: o.httpEndpoint, Metrics: counted.Handler(), Log: log})
	if err != nil {
		return nil, fmt.Errorf("--http-endpoint %s: %w", o.httpEndpoint, err)
	}
	return status, nil
}

// stopOps only logs that somebody has not taken an answer: whoever connects could
// have the daemon end as one that failed.
func stopOps(status *ops.Server, log logr.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), answersTimeout)
	defer cancel()
	if err := status.Stop(ctx); err != nil {
		log.Info("stopped answering", "cause", err.Error())
	}
}

// startTracing has what the daemon does sent to a collector, if that is wanted.
func startTracing(o options, log logr.Logger) (*tracing.Tracing, error) {
	if o.otlpEndpoint == "" {
		return nil, nil
	}
	traces, err := tracing.Start(tracing.Config{Endpoint: o.otlpEndpoint, NodeID: o.nodeID, Version: version, Log: log.WithName("tracing")})
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return traces, nil
}

func stopTracing(traces *tracing.Tracing, log logr.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
	defer cancel()
	if err := traces.Stop(ctx); err != nil {
		log.Info("stopped tracing", "cause", err.Error())
	}
}
