package tracing

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/testing/tracingtest"
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
	// On a busy machine one may be late. By default all would be.
	const tries = 10
	for try := 1; ; try++ {
		began := time.Now()
		_, span := traces.Tracer().Start(t.Context(), "one")
		span.End()
		for len(c.Spans()) < try && time.Since(began) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		took := time.Since(began)
		if took < 4*time.Second {
			break
		}
		if try == tries {
			t.Fatalf("the last of %d spans was sent after %s", try, took)
		}
	}
	if err := traces.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
