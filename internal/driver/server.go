package driver

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/kubelet"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/volume"
)

// Server serves a driver on a Unix socket.
type Server struct{ *grpc.Server }

// NewServer returns a server for the driver.
func NewServer(d *Driver) *Server {
	around := []grpc.UnaryServerInterceptor{countCalls(d.cfg.Metrics), logCalls(d), toStatus, recoverPanics(d.cfg.Log)}
	if d.cfg.Trace != nil {
		around = slices.Insert(around, 0, d.cfg.Trace)
	}
	s := grpc.NewServer(grpc.ChainUnaryInterceptor(around...))
	csi.RegisterIdentityServer(s, d)
	csi.RegisterNodeServer(s, d)
	return &Server{s}
}

// Stop accepts no further calls and waits for the running ones. If ctx ends first, it breaks them
// off and returns an error.
func (s *Server) Stop(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.Server.Stop()
		<-done
		return fmt.Errorf("calls were broken off: %w", ctx.Err())
	}
}

// toStatus gives each error its gRPC code.
func toStatus(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, statusOf(err)
	}
	return resp, nil
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
// only the names of the volume: the rest may contain secrets.
func logCalls(d *Driver) grpc.UnaryServerInterceptor {
	log := d.cfg.Log
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began := time.Now()
		resp, err := handler(ctx, req)
		if err == nil && !log.V(1).Enabled() {
			return resp, nil
		}
		code := status.Code(err)
		fields := []any{"method", info.FullMethod, "code", code.String(), "duration", time.Since(began).String()}
		fields = append(fields, logkeys.About(d.named(req))...)
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

// named returns the names in a request, which may not be valid. A publish has a volume context; an
// unpublish has only the target path.
func (d *Driver) named(req any) (r volume.Record) {
	if v, ok := req.(interface{ GetVolumeId() string }); ok {
		r.ID = volume.ID(v.GetVolumeId())
	}
	if v, ok := req.(interface{ GetTargetPath() string }); ok {
		r.Pod, r.VolumeName = kubelet.ParseTarget(d.podsDir, v.GetTargetPath())
	}
	if v, ok := req.(interface{ GetVolumePath() string }); ok {
		r.Pod, r.VolumeName = kubelet.ParseTarget(d.podsDir, v.GetVolumePath())
	}
	if v, ok := req.(interface{ GetVolumeContext() map[string]string }); ok {
		attributes := v.GetVolumeContext()
		r.Namespace, r.PodName = volume.ObjectName(attributes[kubelet.ContextNamespace]), volume.ObjectName(attributes[kubelet.ContextPodName])
	}
	return r
}

// expected tells whether a code reports a condition that the caller has to handle, and not a defect
// of the driver or its node.
func expected(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound,
		codes.Aborted, codes.Canceled, codes.DeadlineExceeded, codes.Unimplemented:
		return true
	}
	return false
}

// countCalls counts each call of a CSI method, but no other call on the socket.
func countCalls(m *metrics.Metrics) grpc.UnaryServerInterceptor {
	methods := map[string]*metrics.Method{}
	for _, service := range []grpc.ServiceDesc{csi.Identity_ServiceDesc, csi.Node_ServiceDesc} {
		for _, method := range service.Methods {
			methods["/"+service.ServiceName+"/"+method.MethodName] = m.Method(method.MethodName)
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
