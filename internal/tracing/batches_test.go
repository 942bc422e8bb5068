package tracing

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/tracing/tracingtest"
)

// TestBadEnvironmentEndsTheStart: the SDK panics at some numbers, and never rests with
// others.
func TestBadEnvironmentEndsTheStart(t *testing.T) {
	for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY"} {
		for _, value := range []string{"-1", "0", "99999999999999", "many"} {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Setenv(name, value)
				_, url := tracingtest.Start(t)
				traces, err := Start(Config{Endpoint: url, NodeID: "node-1", Version: "1.2.3", Log: logr.Discard()})
				if err == nil {
					t.Fatal(traces.Stop(t.Context()))
				}
				if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), value) {
					t.Errorf("%v, want the variable and its value", err)
				}
			})
		}
	}
}

// TestEnvironmentSetsBatches: by default the span would wait for five seconds. A batch may
// be larger than the queue.
func TestEnvironmentSetsBatches(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "200")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "7")
	c, url := tracingtest.Start(t)
	traces := startTracing(t, url)
	began := time.Now()
	_, span := traces.Tracer().Start(t.Context(), "one")
	span.End()
	for len(c.Spans()) == 0 && time.Since(began) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the span was sent after %s", took)
	}
	if err := traces.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
