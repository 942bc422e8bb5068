package edge

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// publisher counts publishes.
type publisher struct {
	csi.UnimplementedNodeServer
	published atomic.Int32
}

func (p *publisher) NodePublishVolume(context.Context, *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	p.published.Add(1)
	return &csi.NodePublishVolumeResponse{}, nil
}

// TestCallWhoseClientHasGone: a call that was given up before it began is not begun. The process stood still, say, and what the
// client sent after that may be done already.
func TestCallWhoseClientHasGone(t *testing.T) {
	var p publisher
	came, answered := make(chan struct{}), make(chan error, 1)
	cfg := testConfig(&counters{})
	cfg.Services = []Service{{Desc: &csi.Node_ServiceDesc, Implementation: &p}}
	cfg.Hold = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		close(came)
		<-ctx.Done()
		resp, err := handler(ctx, req)
		answered <- err
		return resp, err
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := New(cfg)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-came
		giveUp()
	}()
	if _, err := csi.NewNodeClient(conn).NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{}); status.Code(err) != codes.Canceled {
		t.Fatalf("the client gave the call up and got %v", err)
	}
	if err := <-answered; err == nil || p.published.Load() != 0 {
		t.Errorf("published %d times, answered %v; want a call that was not begun", p.published.Load(), err)
	}
}
