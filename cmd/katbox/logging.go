package main

import (
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"

	"github.com/katbox/katbox/internal/lib/logging"
)

// newLogger returns the daemon's log, to which the libraries write as well. It goes to stdout:
// stderr is for the one line that says why the daemon ended.
func newLogger(level, format string, w io.Writer) (logr.Logger, error) {
	z, err := logging.New(level, format, w)
	if err != nil {
		return logr.Logger{}, err
	}
	// gRPC logs at info what belongs to debug (each connection and its state).
	grpcLevel := zap.WarnLevel
	if z.Core().Enabled(zap.DebugLevel) {
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
