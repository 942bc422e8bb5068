package podsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/volume"
)

// Socket returns the path of the kubelet's socket. root is the kubelet's root directory.
func Socket(root string) string { return filepath.Join(root, "pods-api", "pods-api.sock") }

// Config is what a Client works with. All fields but Log are required.
type Config struct {
	// Socket is the path of the kubelet's socket, which need not be there yet.
	Socket string
	// Driver is the name of the CSI driver whose inline volumes count.
	Driver string
	// Ended is called for each pod with such volumes that has ended: at least once, one after the
	// other, and again after each connect. It may wait until ctx ends; while it does the kubelet's events wait
	// too, and if there are too many the client begins anew.
	Ended func(ctx context.Context, e outcome.Ending)
	// Ends: it is called with how the pod ended, too, not with the outcome alone.
	Ends bool
	// Up is called with true once all pods have been listed, and with false when the watch has ended.
	Up  func(bool)
	Log logr.Logger
}

const (
	// mostMessage bounds an event. A pod in etcd has at most 1.5 MiB; the kubelet adds its status.
	mostMessage = 4 << 20
	// window bounds what the kubelet may send before it is read, on the stream and on the connection.
	window = 256 << 10
	// mostHeaders bounds the headers of an answer, in bytes.
	mostHeaders = 64 << 10
	// pings is how long the connection may be silent before the kubelet is asked whether it is there,
	// pingLimit how long that may take. A gRPC server takes more frequent pings for an attack.
	pings     = 6 * time.Minute
	pingLimit = 30 * time.Second

	watchPods = "/v1alpha1.Pods/WatchPods"
)

// pace sets the times of a Client; tests shorten them.
type pace struct {
	// look is the time between two looks whether there is a socket.
	look     time.Duration
	failures retry.Backoff
	// silence is how long the kubelet may send nothing before all pods are listed.
	silence time.Duration
}

var usualPace = pace{
	look: 5 * time.Second, failures: retry.Backoff{First: time.Second, Longest: 30 * time.Second, Jitter: 0.5}, silence: 30 * time.Second,
}

// errSilent: the list takes too long.
var errSilent = errors.New("the kubelet does not answer")

// Client watches the kubelet's pods.
type Client struct {
	cfg    Config
	pace   pace
	cancel context.CancelFunc
	task   sync.WaitGroup
	// reported is the last cause that was logged.
	reported string
}

// Start begins to watch. It returns at once.
func Start(cfg Config) (*Client, error) { return start(cfg, usualPace) }

func start(cfg Config, p pace) (*Client, error) {
	if !filepath.IsAbs(cfg.Socket) || cfg.Driver == "" || cfg.Ended == nil || cfg.Up == nil {
		return nil, errors.New("podsapi: Config.Socket, an absolute path, Driver, Ended and Up are required")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{cfg: cfg, pace: p, cancel: cancel}
	c.task.Go(func() { c.run(ctx) })
	return c, nil
}

// Stop ends the watch, and waits for a call of Ended that runs.
func (c *Client) Stop() {
	c.cancel()
	c.task.Wait()
}

// run watches until ctx ends.
func (c *Client) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		if _, err := os.Stat(c.cfg.Socket); err != nil {
			failures = 0
			_ = retry.Pause(ctx, c.pace.look)
			continue
		}
		synced, err := c.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if synced {
			failures, c.reported = 0, ""
		}
		failures++
		wait := c.pace.failures.After(failures)
		c.say(err, wait)
		_ = retry.Pause(ctx, wait)
	}
}

// say logs each cause once.
func (c *Client) say(err error, wait time.Duration) {
	if why := volume.OneLine(err); why != c.reported {
		c.reported = why
		c.cfg.Log.Info("the kubelet's pods cannot be watched, trying again until it works; how pods end meanwhile may stay unknown",
			logkeys.Cause, why, "socket", c.cfg.Socket, logkeys.Interval, duration.Format(wait.Round(time.Second)))
	}
}

// raw passes messages on as bytes.
type raw struct{}

// Marshal returns the bytes.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal keeps a copy of the bytes.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name is that of the codec of a server.
func (raw) Name() string { return "proto" }

var _ encoding.CodecV2 = raw{}

// dial prepares a connection to the socket.
func (c *Client) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///kubelet",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.cfg.Socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithMaxHeaderListSize(mostHeaders),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pings, Timeout: pingLimit}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(mostMessage)))
}

// watch watches once. synced: all pods were listed.
func (c *Client) watch(ctx context.Context) (synced bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(c.pace.silence, func() { cancel(errSilent) })
	defer silent.Stop()
	conn, err := c.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watchPods)
	if err == nil {
		request := []byte{}
		// After an EOF the reason is received.
		if err = stream.SendMsg(&request); errors.Is(err, io.EOF) {
			err = nil
		}
		_ = stream.CloseSend() // it returns nil
	}
	defer func() {
		if synced {
			c.cfg.Up(false)
		}
	}()
	for unreadable := false; err == nil; {
		var message []byte
		if err = stream.RecvMsg(&message); err != nil {
			break
		}
		var e event
		if e, err = decodeEvent(message); err != nil {
			break
		}
		switch e.kind {
		case eventSynced:
			silent.Stop()
			if !synced {
				synced = true
				c.reported = ""
				c.cfg.Log.Info("watching the kubelet's pods", "socket", c.cfg.Socket)
				c.cfg.Up(true)
			}
		case eventAdded, eventModified:
			// One pod that cannot be read must not take the outcomes of all others.
			if wrong := c.pod(ctx, e.pod); wrong != nil && !unreadable {
				unreadable = true
				c.cfg.Log.Info("a pod of the kubelet cannot be read; how it ends stays unknown", logkeys.Cause, volume.OneLine(wrong))
			}
		}
		if !synced {
			silent.Reset(c.pace.silence)
		}
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		err = cause
	}
	return synced, fmt.Errorf("watch the kubelet's pods: %w", err)
}

// pod passes on the end of a pod.
func (c *Client) pod(ctx context.Context, message []byte) error {
	pod, err := decodePod(message, c.cfg.Driver)
	if err != nil {
		return err
	}
	if o := outcome.Of(pod); o != volume.OutcomeUnknown && pod.UID != "" && len(pod.Volumes) > 0 {
		ending := outcome.Ending{Pod: pod.UID, Outcome: o, Volumes: pod.Volumes}
		if c.cfg.Ends {
			var end podend.Pod
			if end, err = decodeEnd(message); err == nil { // else the outcome counts all the same
				ending.End = end.Encode()
			}
		}
		c.cfg.Ended(ctx, ending)
	}
	return err
}
