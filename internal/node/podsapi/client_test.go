package podsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
)

// patience is far longer than anything should take.
const patience = 2 * time.Minute

// quick never makes a test wait, and is patient with a kubelet that answers.
var quick = pace{
	look: time.Millisecond, failures: retry.Backoff{First: time.Millisecond, Longest: 10 * time.Millisecond}, silence: patience,
}

const eventDeleted = 3

// encode is an event as the kubelet sends it.
func encode(kind uint64, pod []byte) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), kind)
	if pod != nil {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), pod)
	}
	return b
}

// ofPhase is an event about a pod with a Katbox volume.
func ofPhase(t testing.TB, kind uint64, uid string, phase core.PodPhase) []byte {
	p := &core.Pod{Spec: core.PodSpec{Volumes: []core.Volume{inline("scratch", driver)}}, Status: core.PodStatus{Phase: phase}}
	p.UID = types.UID(uid)
	return encode(kind, marshal(t, p))
}

// step plays one connection. Exactly one of its functions is set.
type step struct {
	// raw owns the connection, stream plays the call of WatchPods on it.
	raw    func(net.Conn)
	stream func(grpc.ServerStream) error
}

// kubelet plays the kubelet's socket: each connection or call takes the next step, and the last step
// is repeated.
type kubelet struct {
	net.Listener
	t testing.TB

	mu    sync.Mutex
	steps []step
	conns []net.Conn
}

func startKubelet(t testing.TB, socket string, steps ...step) *kubelet {
	t.Helper()
	// The socket has its name when it takes connections, not a moment before.
	l, err := net.Listen("unix", socket+"-")
	if err == nil {
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		err = os.Rename(socket+"-", socket)
	}
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{Listener: l, t: t, steps: steps}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.MaxSendMsgSize(1<<30), grpc.UnknownServiceHandler(k.handle))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(k)
	}()
	t.Cleanup(func() {
		server.Stop()
		k.mu.Lock()
		for _, conn := range k.conns {
			conn.Close()
		}
		k.mu.Unlock()
		<-ended
	})
	return k
}

// next returns the next step if it has to be played so.
func (k *kubelet) next(raw bool) (s step, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s = k.steps[0]
	if (s.raw != nil) != raw {
		return s, false
	}
	if len(k.steps) > 1 {
		k.steps = k.steps[1:]
	}
	return s, true
}

// Accept plays the steps that need a whole connection.
func (k *kubelet) Accept() (net.Conn, error) {
	for {
		conn, err := k.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s, ok := k.next(true)
		if !ok {
			return conn, nil
		}
		k.mu.Lock()
		k.conns = append(k.conns, conn)
		k.mu.Unlock()
		go s.raw(conn)
	}
}

func (k *kubelet) handle(_ any, stream grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(stream); method != "/v1alpha1.Pods/WatchPods" {
		k.t.Errorf("the call is %s", method)
	}
	var request []byte
	if err := stream.RecvMsg(&request); err != nil || len(request) > 0 {
		k.t.Errorf("the request is %q, %v", request, err)
	}
	s, ok := k.next(false)
	if !ok {
		return status.Error(codes.Unavailable, "the next one is to be a whole connection")
	}
	return s.stream(stream)
}

// says sends events, and then waits until the client goes.
func says(events ...[]byte) step {
	return step{stream: func(stream grpc.ServerStream) error {
		for _, e := range events {
			if err := stream.SendMsg(&e); err != nil {
				return err
			}
		}
		<-stream.Context().Done()
		return nil
	}}
}

// breaks sends events, and then ends the call.
func breaks(err error, events ...[]byte) step {
	return step{stream: func(stream grpc.ServerStream) error {
		for _, e := range events {
			if err := stream.SendMsg(&e); err != nil {
				return err
			}
		}
		return err
	}}
}

// scene is a client and what it says.
type scene struct {
	t     testing.TB
	cfg   Config
	ended chan outcome.Ending
	ups   chan bool

	mu  sync.Mutex
	log strings.Builder
}

func newScene(t testing.TB) *scene {
	s := &scene{t: t, ended: make(chan outcome.Ending, 10_000), ups: make(chan bool, 10_000)}
	s.cfg = Config{
		Socket: filepath.Join(t.TempDir(), "p.sock"), Driver: driver, Log: s.logger(),
		Ended: func(_ context.Context, e outcome.Ending) { s.ended <- e }, Up: func(up bool) { s.ups <- up },
	}
	return s
}

func (s *scene) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintln(&s.log, line)
	}, funcr.Options{})
}

func (s *scene) logged(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.log.String(), text)
}

func (s *scene) start(p pace) *Client {
	s.t.Helper()
	c, err := start(s.cfg, p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Stop)
	return c
}

func next[T any](t testing.TB, what string, c chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	return v
}

func (s *scene) wantEnded(uid string, o volume.Outcome) {
	s.t.Helper()
	e := next(s.t, "ending", s.ended)
	if string(e.Pod) != uid || e.Outcome != o || len(e.Volumes) != 1 || e.Volumes[0] != "scratch" {
		s.t.Errorf("got %+v, want that %s has %s", e, uid, o)
	}
}

// TestWatch: the socket may appear later; pods that have ended are passed on, from the list and after it.
func TestWatch(t *testing.T) {
	s := newScene(t)
	c := s.start(quick)
	foreign := pod()
	foreign.UID, foreign.Spec.Volumes = "foreign", []core.Volume{inline("scratch", "another.driver")}
	startKubelet(t, s.cfg.Socket, says(
		ofPhase(t, eventAdded, "running", core.PodRunning), ofPhase(t, eventAdded, "done", core.PodSucceeded),
		encode(eventAdded, marshal(t, foreign)), encode(eventSynced, nil),
		ofPhase(t, eventDeleted, "deleted", core.PodFailed), encode(9, []byte("later versions")), encode(eventAdded, nil),
		ofPhase(t, eventModified, "running", core.PodFailed),
	))
	s.wantEnded("done", volume.Succeeded)
	if up := next(t, "state", s.ups); !up {
		t.Error("the source is not up after the list")
	}
	s.wantEnded("running", volume.Failed)
	c.Stop()
	if up := next(t, "state", s.ups); up {
		t.Error("the source is still up")
	}
	if len(s.ended) > 0 {
		t.Errorf("also ended: %+v", <-s.ended)
	}
	if s.logged("watching the kubelet's pods") != 1 || s.logged("cannot") > 0 {
		t.Errorf("the log is\n%s", s.log.String())
	}
}

// TestMisbehaviour: whatever the kubelet does first, the next list has all.
func TestMisbehaviour(t *testing.T) {
	whole := [][]byte{
		ofPhase(t, eventAdded, "a", core.PodSucceeded), encode(eventSynced, nil), ofPhase(t, eventModified, "b", core.PodFailed),
	}
	junk := []byte(strings.Repeat("\x00\x01\x02 junk of ten million bytes ", 10_000_000/30))
	hold := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for name, steps := range map[string][]step{
		"behind":            {breaks(status.Error(codes.ResourceExhausted, "watch client channel closed"), whole...)},
		"starting":          {breaks(status.Error(codes.FailedPrecondition, "Kubelet is initializing"))},
		"no such call":      {breaks(status.Error(codes.Unimplemented, "unknown service"))},
		"ends at once":      {breaks(nil)},
		"ends before all":   {breaks(nil, whole[:1]...)},
		"ends after all":    {breaks(nil, whole[:2]...)},
		"no list":           {breaks(nil, whole[2:]...)},
		"10 MB in a pod":    {says(encode(eventAdded, junk))},
		"malformed event":   {says([]byte{0x12, 0xff})},
		"10 MB of junk":     {{raw: func(conn net.Conn) { _, _ = conn.Write(junk); hold(conn) }}},
		"half a frame":      {{raw: func(conn net.Conn) { _, _ = conn.Write([]byte{0, 0, 6, 4}); hold(conn) }}},
		"closes":            {{raw: func(conn net.Conn) { conn.Close() }}},
		"never says hello":  {{raw: hold}},
		"never lists":       {says()},
		"hangs in the list": {says(whole[:1]...)},
		"many times": {
			breaks(nil), breaks(errors.New("x")), breaks(status.Error(codes.ResourceExhausted, "")), breaks(nil, whole[:2]...),
			{raw: func(conn net.Conn) { conn.Close() }}, breaks(nil, whole...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p := quick
			if strings.HasPrefix(name, "never") || strings.HasPrefix(name, "half") || strings.HasPrefix(name, "hangs") {
				p.silence = time.Second
			}
			last := says(append([][]byte{ofPhase(t, eventAdded, "last", core.PodSucceeded)}, whole...)...)
			startKubelet(t, s.cfg.Socket, append(steps, last)...)
			s.start(p)
			for seen := map[string]bool{}; !seen["last"] || !seen["a"] || !seen["b"]; {
				seen[string(next(t, "ending", s.ended).Pod)] = true
			}
			if s.logged("cannot be watched") == 0 {
				t.Error("nothing is logged")
			}
		})
	}
}

// TestBadPod: a pod that cannot be read takes nothing from the others, and is logged once in a watch.
func TestBadPod(t *testing.T) {
	s := newScene(t)
	startKubelet(t, s.cfg.Socket, says(encode(eventAdded, []byte{0x0a, 0xff}), ofPhase(t, eventAdded, "../x", core.PodFailed),
		ofPhase(t, eventAdded, "good", core.PodFailed), encode(eventSynced, nil)))
	s.start(quick)
	s.wantEnded("good", volume.Failed)
	if n := s.logged("cannot be read"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// TestEnds: how a pod ended is passed on only if that is wanted. Where it cannot be read, the outcome is.
func TestEnds(t *testing.T) {
	p := &core.Pod{Spec: core.PodSpec{Volumes: []core.Volume{inline("scratch", driver)}}, Status: core.PodStatus{Phase: core.PodFailed}}
	p.UID = "damaged"
	// The limits of a container: bytes that are no message.
	container := protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), []byte{0x0a, 0xff})
	spec := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), container)
	damaged := protowire.AppendBytes(protowire.AppendTag(marshal(t, p), 2, protowire.BytesType), spec)
	for _, wanted := range []bool{true, false} {
		s := newScene(t)
		s.cfg.Ends = wanted
		startKubelet(t, s.cfg.Socket, says(ofPhase(t, eventAdded, "good", core.PodFailed), encode(eventAdded, damaged), encode(eventSynced, nil)))
		s.start(quick)
		for range 2 {
			e := next(t, "ending", s.ended)
			if (e.End != nil) != (wanted && e.Pod == "good") || e.Outcome != volume.Failed {
				t.Errorf("wanted %t: got %+v", wanted, e)
			}
		}
		next(t, "state", s.ups)
		if got := s.logged("cannot be read"); (got == 1) != wanted {
			t.Errorf("wanted %t: it is logged %d times", wanted, got)
		}
	}
}

// TestCausesAreLoggedOnce: a kubelet that refuses for hours does not fill the log.
func TestCausesAreLoggedOnce(t *testing.T) {
	s := newScene(t)
	refuses := breaks(status.Error(codes.FailedPrecondition, "Kubelet is initializing"))
	startKubelet(t, s.cfg.Socket, refuses, refuses, refuses, refuses, says(encode(eventSynced, nil)))
	s.start(quick)
	next(t, "list", s.ups)
	if n := s.logged("Kubelet is initializing"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// TestBackpressure: while an ending is not taken, the kubelet's events wait in the kubelet.
func TestBackpressure(t *testing.T) {
	s := newScene(t)
	large := pod()
	large.DeletionTimestamp, large.Status.Conditions = nil, nil
	large.Annotations = map[string]string{"a": strings.Repeat("x", 1<<20)}
	message := encode(eventAdded, marshal(t, large))
	const most = 100
	sent := make(chan struct{})
	startKubelet(t, s.cfg.Socket, step{stream: func(stream grpc.ServerStream) error {
		for range most {
			if err := stream.SendMsg(&message); err != nil {
				return err
			}
		}
		close(sent)
		return nil
	}}, says(encode(eventSynced, nil)))
	blocked := make(chan struct{})
	var once sync.Once
	s.cfg.Ended = func(ctx context.Context, _ outcome.Ending) {
		once.Do(func() { close(blocked) })
		<-ctx.Done()
	}
	c := s.start(quick)
	next(t, "ending", blocked)
	// Without a bound a hundred MiB are sent in far less.
	select {
	case <-sent:
		t.Errorf("%d MiB were sent while the first pod was not taken", most)
	case <-time.After(time.Second):
	}
	c.Stop()
}

func TestConfig(t *testing.T) {
	whole := newScene(t).cfg
	for name, change := range map[string]func(*Config){
		"socket": func(c *Config) { c.Socket = "pods-api.sock" }, "driver": func(c *Config) { c.Driver = "" },
		"ended": func(c *Config) { c.Ended = nil }, "up": func(c *Config) { c.Up = nil },
	} {
		cfg := whole
		change(&cfg)
		if _, err := Start(cfg); err == nil {
			t.Errorf("%s: it starts", name)
		}
	}
	if got := Socket("/var/lib/kubelet"); got != "/var/lib/kubelet/pods-api/pods-api.sock" {
		t.Errorf("the socket is %s", got)
	}
}
