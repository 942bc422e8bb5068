package edge

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

// StatusOf returns the error as gRPC sends it, with the code that code returns. A status stays as it is.
func StatusOf(err error, code func(error) codes.Code) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(code(err), err.Error())
}

// toStatus gives each error its gRPC code.
func toStatus(code func(error) codes.Code) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if err != nil {
			return nil, StatusOf(err, code)
		}
		return resp, nil
	}
}

// refuseForsaken does not begin a call whose client has gone. While the process stood still the client may have sent another one:
// a publish that begins after the unpublish that followed it would mount what is never unpublished.
func refuseForsaken(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(fmt.Errorf("not begun: %w", err)).Err()
	}
	return handler(ctx, req)
}

// recoverPanics turns a panic in a handler into an error. The call's effects are unknown then.
func recoverPanics(log logr.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if reason := recover(); reason != nil {
				log.Error(fmt.Errorf("panic: %v", reason), "call failed", "method", info.FullMethod, "stack", string(debug.Stack()))
				err = fmt.Errorf("%w: internal error: %v", volume.ErrUncertain, reason)
			}
		}()
		return handler(ctx, req)
	}
}

// logCalls logs each failed call once, and every call at the debug level. Of the request it logs
// only the names: the rest may contain secrets.
func logCalls(cfg Config) grpc.UnaryServerInterceptor {
	log := cfg.Log
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began := time.Now()
		resp, err := handler(ctx, req)
		if err == nil && !log.V(1).Enabled() {
			return resp, nil
		}
		code := status.Code(err)
		fields := []any{"method", info.FullMethod, "code", code.String(), "duration", time.Since(began).String()}
		fields = append(fields, cfg.Names(req)...)
		switch {
		case err == nil:
			log.V(1).Info("call", fields...)
		case expected(code):
			log.Info("call refused", append(fields, logkeys.Cause, status.Convert(err).Message())...)
		default:
			log.Error(err, "call failed", fields...)
		}
		return resp, err
	}
}

// expected reports whether a code reports a condition that the caller has to handle, and not a defect
// of the driver or its node.
func expected(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound, codes.OutOfRange,
		codes.Aborted, codes.Canceled, codes.DeadlineExceeded, codes.Unimplemented:
		return true
	}
	return false
}

// countCalls counts each call of a method that is served, but no other call on the socket.
func countCalls(cfg Config) grpc.UnaryServerInterceptor {
	methods := map[string]Calls{}
	for _, service := range cfg.Services {
		for _, method := range service.Desc.Methods {
			methods["/"+service.Desc.ServiceName+"/"+method.MethodName] = cfg.Count(method.MethodName)
		}
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		method := methods[info.FullMethod]
		if method == nil {
			return handler(ctx, req)
		}
		began := time.Now()
		method.CallBegan()
		resp, err := handler(ctx, req)
		method.CallEnded(status.Code(err).String(), time.Since(began))
		return resp, err
	}
}
