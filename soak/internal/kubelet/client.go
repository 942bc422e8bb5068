package kubelet

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/testbed"
)

// client makes the calls, each on a connection of its own.
type client struct {
	socket   string
	timeout  time.Duration
	listener Listener
}

// request is one call on a connection.
type request func(context.Context, grpc.ClientConnInterface) error

// dial makes one call that belongs to no volume.
func (c client) dial(ctx context.Context, do request) error {
	// The first call on it connects.
	conn, err := testbed.Dial(c.socket)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.socket, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return do(ctx, conn)
}

// call makes one call for a volume. It is given up after giveUp, if that is not
// 0, and when ctx ends, which is when the kubelet crashes.
func (c client) call(ctx context.Context, v *Volume, m history.Method, giveUp time.Duration, do request) error {
	began := v.Story.Begin(m, giveUp > 0)
	err := c.dial(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		if giveUp > 0 {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			timer := time.AfterFunc(giveUp, cancel)
			defer timer.Stop()
			ctx = inner
		}
		return do(ctx, conn)
	})
	if err != nil && ctx.Err() != nil {
		err = status.Error(codes.Canceled, "the kubelet crashed")
		v.Story.End(began, err)
		return err
	}
	c.listener.Called(v, v.Story.End(began, err))
	return err
}
