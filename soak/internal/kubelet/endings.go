package kubelet

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/katbox/katbox/soak/testbed"
)

// endingsAgain is after how long a watch that ended is begun again.
const endingsAgain = 50 * time.Millisecond

// Endings watches the PodsAPI below the kubelet's directory until ctx ends, for drivers that are not the
// daemon. It calls ended with the UID and the phase of each pod that has ended, some more than once.
func Endings(ctx context.Context, root string, ended func(uid, phase string)) {
	for ctx.Err() == nil {
		_ = watchEndings(ctx, root, ended) // the socket may come later
		select {
		case <-ctx.Done():
		case <-time.After(endingsAgain):
		}
	}
}

func watchEndings(ctx context.Context, root string, ended func(uid, phase string)) error {
	socket := filepath.Join(root, "pods-api", "pods-api.sock")
	conn, err := testbed.Dial(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/v1alpha1.Pods/WatchPods", grpc.ForceCodecV2(plain{}))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&[]byte{}); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var event []byte
		if err := stream.RecvMsg(&event); err != nil {
			return err
		}
		pod := field(event, 2)
		if uid := field(field(pod, 1), 5); len(uid) > 0 {
			ended(string(uid), string(field(field(pod, 3), 1)))
		}
	}
}

// field returns the last field of a message that has a number, if it has a length; nil without one.
func field(message []byte, number protowire.Number) (value []byte) {
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return nil
		}
		message = message[length:]
		if n == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message)
		}
		if length = protowire.ConsumeFieldValue(n, kind, message); length < 0 {
			return nil
		}
		message = message[length:]
	}
	return value
}
