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
)

// newLogger returns the daemon's log, which the libraries write to as well.
// It goes to stdout: stderr is left to the one line that says why the daemon
// ended.
func newLogger(level, format string, w io.Writer) (logr.Logger, error) {
	lowest, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q is not debug, info, warn or error", level)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.TimeKey = "time"
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "console":
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format %q is not json or console", format)
	}
	z := zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lowest))

	// gRPC tells at info what belongs to debug (each connection and its state).
	grpcLevel := zap.WarnLevel
	if lowest < zap.InfoLevel {
		grpcLevel = zap.DebugLevel
	}
	grpclog.SetLoggerV2(zapgrpc.NewLogger(z.Named("grpc").WithOptions(zap.IncreaseLevel(grpcLevel), zap.WrapCore(repeatSeldom))))
	log := zapr.NewLogger(z)
	klog.SetLogger(log.WithName("mount-utils"))
	return log, nil
}

// repeatSeldom lets the same line pass once in ten minutes. gRPC warns at each try
// that nobody is at the other end, which is how a collector of traces that is not
// there would fill the log.
func repeatSeldom(core zapcore.Core) zapcore.Core {
	return zapcore.NewSamplerWithOptions(core, 10*time.Minute, 1, 0)
}
