package main

import (
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"

	"github.com/katbox/katbox/internal/logsink"
	"github.com/katbox/katbox/internal/metrics"
)

const (
	// mostLog bounds the log lines that wait when the reader of stdout stalls: some three thousand.
	mostLog = 1 << 20
	// logTimeout bounds the wait for that reader at the end.
	logTimeout = time.Second
)

// newSink returns the buffer in front of stdout. A reader that stalls must not stall the daemon.
func newSink(encoder zapcore.Encoder, stdout io.Writer, counted *metrics.Metrics) *logsink.Sink {
	missing := func(lines int) []byte {
		entry := zapcore.Entry{Level: zap.WarnLevel, Time: time.Now(),
			Message: "lines of the log are missing here, stdout was not read fast enough"}
		line, err := encoder.EncodeEntry(entry, []zapcore.Field{zap.Int("lines", lines)})
		if err != nil {
			return nil // the metric counts them
		}
		return line.Bytes()
	}
	return logsink.New(logsink.Config{Out: stdout, Most: mostLog, Dropped: counted.LogLineDropped, Missing: missing})
}

func newEncoder(format string) (zapcore.Encoder, error) {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.TimeKey = "time"
	switch format {
	case "json":
		return zapcore.NewJSONEncoder(encoding), nil
	case "console":
		return zapcore.NewConsoleEncoder(encoding), nil
	default:
		return nil, fmt.Errorf("--log-format %q is not json or console", format)
	}
}

// newLogger returns the daemon's log, to which the libraries write as well. It goes to stdout:
// stderr is for the one line that says why the daemon ended.
func newLogger(level string, encoder zapcore.Encoder, w io.Writer) (logr.Logger, error) {
	lowest, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q is not debug, info, warn or error", level)
	}
	z := zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lowest))

	// gRPC logs at info what belongs to debug (each connection and its state).
	grpcLevel := zap.WarnLevel
	if lowest < zap.InfoLevel {
		grpcLevel = zap.DebugLevel
	}
	grpclog.SetLoggerV2(zapgrpc.NewLogger(z.Named("grpc").WithOptions(zap.IncreaseLevel(grpcLevel), zap.WrapCore(repeatSeldom))))
	log := zapr.NewLogger(z)
	klog.SetLogger(log.WithName("mount-utils"))
	return log, nil
}

// repeatSeldom lets the same line pass once in ten minutes: gRPC warns at each attempt to connect
// to a collector of traces that is missing.
func repeatSeldom(core zapcore.Core) zapcore.Core {
	return zapcore.NewSamplerWithOptions(core, 10*time.Minute, 1, 0)
}
