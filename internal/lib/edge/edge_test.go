package edge

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestStatusStaysAStatus(t *testing.T) {
	code := func(error) codes.Code { return codes.Aborted }
	if got := status.Code(StatusOf(status.Error(codes.Unimplemented, "no"), code)); got != codes.Unimplemented {
		t.Errorf("code %s, want Unimplemented", got)
	}
	if got := status.Code(StatusOf(errors.New("no"), code)); got != codes.Aborted {
		t.Errorf("code %s, want Aborted", got)
	}
}

// counters remembers what was counted.
type counters struct{ counted []string }

func (c *counters) of(method string) Calls { return calls{c, method} }

type calls struct {
	*counters
	method string
}

func (c calls) CallBegan() { c.counted = append(c.counted, c.method+" began") }

func (c calls) CallEnded(code string, _ time.Duration) {
	c.counted = append(c.counted, c.method+" "+code)
}

func testConfig(c *counters) Config {
	return Config{
		Services: []Service{{Desc: &csi.Identity_ServiceDesc}, {Desc: &csi.Node_ServiceDesc}},
		Code:     func(error) codes.Code { return codes.Aborted },
		Names:    func(any) []any { return nil }, Count: c.of, Log: logr.Discard(),
	}
}

// TestOtherServicesAreNotCounted: and a call that runs is not counted as answered.
func TestOtherServicesAreNotCounted(t *testing.T) {
	var c counters
	intercept := countCalls(testConfig(&c))
	call := func(method string, during ...string) {
		_, _ = intercept(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
			if !slices.Equal(c.counted, during) {
				t.Errorf("counted while %s runs: %q, want %q", method, c.counted, during)
			}
			return nil, nil
		})
	}
	call("/grpc.health.v1.Health/Check")
	call("/csi.v1.Node/NodePublishVolume", "NodePublishVolume began")
	if want := []string{"NodePublishVolume began", "NodePublishVolume OK"}; !slices.Equal(c.counted, want) {
		t.Errorf("counted %q, want %q", c.counted, want)
	}
}

func TestPanicLeavesTheOutcomeOpen(t *testing.T) {
	_, err := recoverPanics(logr.Discard())(t.Context(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) {
		panic("broken")
	})
	if !errors.Is(err, volume.ErrUncertain) {
		t.Errorf("a panic became %v, want %v", err, volume.ErrUncertain)
	}
}
