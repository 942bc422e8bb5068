package tracing

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/katbox/katbox/internal/tracing/tracingtest"
)

// TestEnvironmentDoesNotBreakTheStart: the SDK panics at some numbers, and never
// rests with others.
func TestEnvironmentDoesNotBreakTheStart(t *testing.T) {
	for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY"} {
		for _, value := range []string{"-1", "0", "99999999999999", "many"} {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Setenv(name, value)
				var log strings.Builder
				var o sdktrace.BatchSpanProcessorOptions
				for _, set := range batches(funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{})) {
					set(&o)
				}
				if o.MaxQueueSize != sdktrace.DefaultMaxQueueSize || o.MaxExportBatchSize != sdktrace.DefaultMaxExportBatchSize ||
					o.BatchTimeout.Milliseconds() != sdktrace.DefaultScheduleDelay {
					t.Errorf("%+v, want the usual", o)
				}
				if !strings.Contains(log.String(), name) {
					t.Errorf("log %q, want the name of the variable", log.String())
				}
				c, url := tracingtest.Start(t)
				traces := startTracing(t, url)
				_, span := traces.Tracer().Start(t.Context(), "one")
				span.End()
				if err := traces.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				if spans := c.Spans(); len(spans) != 1 {
					t.Errorf("sent %v, want one span", spans)
				}
			})
		}
	}
}

func TestEnvironmentSetsBatches(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "200")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "7")
	var o sdktrace.BatchSpanProcessorOptions
	for _, set := range batches(funcr.New(func(_, line string) { t.Error(line) }, funcr.Options{})) {
		set(&o)
	}
	if o.MaxQueueSize != 100 || o.MaxExportBatchSize != 100 || o.BatchTimeout.Milliseconds() != 7 {
		t.Errorf("%+v, want what the environment says, and no batch above the queue", o)
	}
}
