package tracing

import (
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// mostSpans bounds the queue and the batches: a span takes about a kilobyte.
	mostSpans = 1 << 16
	// longestDelay is in milliseconds.
	longestDelay = int(time.Hour / time.Millisecond)
)

// batches are how spans are collected and sent, as the environment says. The SDK
// reads that too, but takes every number as it is: one below 0 panics in it, and
// a delay of 0 keeps a processor busy. It is to be told these, whatever it reads.
func batches(log logr.Logger) []sdktrace.BatchSpanProcessorOption {
	queue := variable(log, "OTEL_BSP_MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize, mostSpans)
	batch := variable(log, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize, mostSpans)
	delay := variable(log, "OTEL_BSP_SCHEDULE_DELAY", sdktrace.DefaultScheduleDelay, longestDelay)
	return []sdktrace.BatchSpanProcessorOption{
		sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(min(batch, queue)),
		sdktrace.WithBatchTimeout(time.Duration(delay) * time.Millisecond),
	}
}

// variable returns a number from 1 to most of the environment, and usual where it
// has no such one.
func variable(log logr.Logger, name string, usual, most int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > most {
		log.Info("a variable of the environment is not a number that can be used", "name", name, "value", text, "most", most, "instead", usual)
		return usual
	}
	return number
}
