package driver

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/metrics"
)

// countCalls counts each call of a CSI method, but no other call on the socket. It looks
// the method up by its full name, which gRPC has already.
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
