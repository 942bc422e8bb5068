package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// mood is the variable that makes this test binary a driver, and says of what
// sort.
const mood = "KATBOX_SOAK_TEST_DRIVER"

func TestMain(m *testing.M) {
	if mood := os.Getenv(mood); mood != "" {
		os.Exit(drive(mood, os.Args[1]))
	}
	os.Exit(m.Run())
}

// identity is a driver that can say that it is ready.
type identity struct {
	csi.UnimplementedIdentityServer
	mood string
}

func (i identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(i.mood != "never ready")}, nil
}

// drive is the driver's main function.
func drive(mood, socket string) int {
	fmt.Println("hello from a driver that is", mood)
	if mood == "stillborn" {
		return 3
	}
	if mood == "crowded" {
		for range 10000 {
			go func() { select {} }()
		}
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Println(err)
		return 4
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, identity{mood: mood})
	go func() {
		// The end of the process ends it.
		_ = server.Serve(listener)
	}()
	<-terminated
	switch mood {
	case "mortal":
		panic("it is mortal")
	case "ending badly":
		return 5
	}
	return 0
}

func newDriver(t *testing.T, which string) *Binary {
	t.Helper()
	t.Setenv(mood, which)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The path of t.TempDir may be too long for a socket.
	dir, err := os.MkdirTemp("", "soak-daemon-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	b := New(Config{Binary: self, Args: []string{socket}, Log: filepath.Join(dir, "log"), Socket: socket})
	t.Cleanup(b.Kill)
	return b
}

func TestLife(t *testing.T) {
	b := newDriver(t, "in order")
	for range 2 {
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if u, ok := b.Usage(); !ok || u.RSS == 0 || u.Threads == 0 {
			t.Errorf("a driver that lives uses %+v, %t", u, ok)
		}
		if pid, ok := b.PID(); !ok || unix.Kill(pid, 0) != nil {
			t.Errorf("a driver that lives is process %d, %t", pid, ok)
		}
		b.Kill()
		if pid, ok := b.PID(); ok {
			t.Errorf("a driver that is dead is process %d", pid)
		}
		if u, ok := b.Usage(); ok {
			t.Errorf("a driver that is dead uses %+v", u)
		}
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := b.Usage()
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	if u := b.Total(); u.CPU < before.CPU || u.CPU == 0 || u.Peak == 0 || u.Threads == 0 {
		t.Errorf("in the end it used %+v, and while it lived %+v", u, before)
	}
	select {
	case err := <-b.Died():
		t.Errorf("its end was our doing, but it is told as: %v", err)
	default:
	}
}

func TestStartFails(t *testing.T) {
	b := newDriver(t, "stillborn")
	err := b.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "hello from a driver") {
		t.Errorf("%v, want its exit code and its log", err)
	}

	b = newDriver(t, "never ready")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := b.Start(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("a driver that is never ready: %v", err)
	}

	b = newDriver(t, "never ready")
	b.config.StartLimit = time.Millisecond
	err = b.Start(t.Context())
	for _, want := range []string{"not ready after 1ms", "of CPU time"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a driver that is not ready in time: %v\nThat does not say %q.", err, want)
		}
	}

	b = New(Config{Binary: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")})
	if err := b.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("a driver that does not exist: %v", err)
	}
}

// TestStuck: of a driver that does not go on it is told what it does.
func TestStuck(t *testing.T) {
	b := newDriver(t, "in order")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	does := stuck(b.current()) + b.quote()
	for _, want := range []string{"of CPU time", ", in system call ", "hello from a driver", "SIGQUIT: quit", "goroutine 1 "} {
		if !strings.Contains(does, want) {
			t.Errorf("%s\nThat does not say %q.", does, want)
		}
	}
	if again := stuck(b.current()); again != "" {
		t.Errorf("of a driver that has ended: %s", again)
	}
}

// TestStuckInACrowd: the goroutines are quoted from the first on, although there are very many.
func TestStuckInACrowd(t *testing.T) {
	b := newDriver(t, "crowded")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stuck(b.current())
	if says := b.quote(); !strings.Contains(says, "SIGQUIT: quit") {
		t.Errorf("the quote is %s", says)
	}
}

// TestQuoteOfOneRun: what a driver said in an earlier run is not taken for its last words.
func TestQuoteOfOneRun(t *testing.T) {
	b := newDriver(t, "mortal")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err == nil || !strings.Contains(err.Error(), "panic: it is mortal") {
		t.Errorf("%v, want the panic from its log", err)
	}
	t.Setenv(mood, "ending badly")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := b.Stop()
	if err == nil || strings.Contains(err.Error(), "panic: ") || !strings.Contains(err.Error(), "that is ending badly") {
		t.Errorf("%v, want what it said in this run", err)
	}
}

func TestDied(t *testing.T) {
	b := newDriver(t, "mortal")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid, _ := b.PID()
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-b.Died(); !strings.Contains(err.Error(), "panic: it is mortal") {
		t.Errorf("%v, want the panic from its log", err)
	}
}

func TestStopFails(t *testing.T) {
	b := newDriver(t, "ending badly")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 5") {
		t.Errorf("%v, want its exit code", err)
	}
}

func TestLastWords(t *testing.T) {
	long := strings.Repeat("x", 2*longestQuote)
	for _, test := range []struct{ name, log, want string }{
		{"short", "one\ntwo\n", "one\ntwo"},
		{"long", "begin" + long + "end\n", long[:longestQuote-3] + "end"},
		{"panic", "one\npanic: oh\n\ngoroutine 1\n", "panic: oh\n\ngoroutine 1"},
		{"panic at the start", "panic: oh\n", "panic: oh"},
		{"long panic", "one\npanic: oh" + long, "panic: oh" + long[:longestQuote-9]},
		{"only mentioned", "a panic: no\nend", "a panic: no\nend"},
		{"fatal error", "one\nfatal error: oh\n", "fatal error: oh"},
		{"told to quit", "one\nSIGQUIT: quit\ngoroutine 1\n", "one\nSIGQUIT: quit\ngoroutine 1"},
		{"told to quit, long", long + "\nSIGQUIT: quit" + strings.Repeat("y", 2*longestGoroutines),
			long[:longestQuote-1] + "\nSIGQUIT: quit" + strings.Repeat("y", longestGoroutines-len("SIGQUIT: quit"))},
		{"empty", "", ""},
	} {
		if got := lastWords(test.log); got != test.want {
			t.Errorf("%s: %.60q (%d bytes), want %.60q (%d bytes)", test.name, got, len(got), test.want, len(test.want))
		}
	}
}
