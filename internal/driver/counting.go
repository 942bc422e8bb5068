package driver

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/metrics"
)

// countCalls tells the metrics of each call of a CSI method: not of what else may
// be served on the socket. A method is looked up by the full name that gRPC has of
// it anyway.
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
