package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/node/handlers"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/scratch"
)

// asVerb in the environment makes the test binary the program: some tests need a process of its own.
const asVerb = "KATBOX_TEST_AS_VERB"

func TestMain(m *testing.M) {
	if os.Getenv(asVerb) == "1" {
		ctx, stop := verbs.UntilSignal(context.Background())
		defer stop()
		os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// node is a daemon's real API on a real socket, over volumes of the test.
type node struct {
	t      *testing.T
	socket string
	dir    *scratch.Dir
	root   string
	// front is called with each request, before the handler; it may answer itself.
	front   func(w http.ResponseWriter, r *http.Request) bool
	handler http.Handler

	mu      sync.Mutex
	volumes []volume.Description
	gone    []volume.Tombstone
	usage   volume.Size
	// pages is the most volumes on a page.
	pages int
	lists int
	// counted is how often bytes were asked for; see streams.
	counted *int
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, root: t.TempDir(), pages: 2}
	var err error
	if n.dir, err = scratch.Open(n.root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.dir.Close() })
	handler, err := handlers.NewHandler(handlers.Config{
		Volumes: n, Node: "n17", LowPriority: func() func() { return func() {} }, Metrics: metrics.New("test", ""),
		Space: func() (volume.Space, error) {
			return volume.Space{Total: volume.Size{Bytes: 100 << 30, Inodes: 1000}, Free: volume.Size{Bytes: 12 << 30, Inodes: 900}}, nil
		},
		Report: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "version test\nodd \x1b name\n")
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.socket = filepath.Join(t.TempDir(), "admin.sock")
	n.handler = handler
	n.serve()
	t.Setenv(socketVariable, n.socket)
	return n
}

func (n *node) serve() {
	n.t.Helper()
	listener, err := net.Listen("unix", n.socket)
	if err != nil {
		n.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		front := n.front
		n.mu.Unlock()
		if front == nil || !front(w, r) {
			n.handler.ServeHTTP(w, r)
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			n.t.Errorf("serve: %v", err)
		}
	}()
	n.t.Cleanup(func() {
		server.Close()
		<-done
	})
}

// id returns the ID of a test's volume.
func id(number int) string { return fmt.Sprintf("csi-%064x", number) }

// add adds a retained volume that is age old, and returns its directory.
func (n *node) add(number int, names string, age time.Duration) string {
	n.t.Helper()
	parts := strings.Split(names, "/")
	retained := time.Now().Add(-age - 30*time.Second)
	d := volume.Description{
		Record: volume.Record{
			ID: volume.ID(id(number)), Pod: volume.PodUID(fmt.Sprintf("pod-%d", number)), Namespace: parts[0],
			PodName: parts[1], VolumeName: parts[2],
			Phase: volume.Retained, Unpublished: retained, Published: retained.Add(-time.Hour).Truncate(time.Second), Lifespan: 12 * time.Hour,
		},
		Deadline: retained.Add(12*time.Hour + 2*time.Minute),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.volumes = append(n.volumes, d)
	dir := filepath.Join(n.root, string(d.Record.Pod), string(d.Record.ID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		n.t.Fatal(err)
	}
	return dir
}

// change changes the description of a volume.
func (n *node) change(number int, f func(*volume.Description)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.volumes {
		if string(n.volumes[i].Record.ID) == id(number) {
			f(&n.volumes[i])
		}
	}
}

// List returns pages that hold few volumes, so that every list has several.
func (n *node) List(_ context.Context, s volume.Selection) (volume.Page, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lists++
	sorted := slices.Clone(n.volumes)
	slices.SortFunc(sorted, func(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) })
	var page volume.Page
	for _, d := range sorted {
		if d.Record.Phase != volume.Retained || !s.SelectsDescribed(d) {
			continue
		}
		if len(page.Volumes) == min(n.pages, s.Limit) {
			page.Next = page.Volumes[len(page.Volumes)-1].Record.Key()
			break
		}
		page.Volumes = append(page.Volumes, d)
	}
	return page, nil
}

func (n *node) Describe(_ context.Context, id volume.ID) (volume.Description, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.volumes {
		if d.Record.ID == id {
			return d, nil
		}
	}
	return volume.Description{}, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
}

func (n *node) Awake(context.Context) (awake []volume.Description, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.volumes {
		if d.Record.Phase != volume.Retained {
			awake = append(awake, d)
		}
	}
	return awake, nil
}

func (n *node) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	d, err := n.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Record.Phase != volume.Retained {
		return nil, fmt.Errorf("volume %s: %w", id, volume.ErrNotRetained)
	}
	tree, err := n.dir.Tree(d.Record.Place())
	if err != nil {
		return nil, err
	}
	return &files.Reading{Volume: d, Tree: tree, Lost: context.Background(), Close: func() { tree.Close() }}, nil
}

// decide changes a volume as a person has decided.
func (n *node) decide(id volume.ID, change func(*volume.Description)) (volume.Description, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.volumes {
		if d := &n.volumes[i]; d.Record.ID == id {
			change(d)
			return *d, d.Record.Hold.Check()
		}
	}
	return volume.Description{}, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
}

func (n *node) hold(id volume.ID, kind volume.HoldKind, until time.Time, by, why string) (volume.Description, error) {
	return n.decide(id, func(d *volume.Description) {
		d.Record.Hold = volume.Hold{Kind: kind, For: until.Sub(d.Record.Unpublished), By: by, Why: why}
		if kind == volume.Released || d.Deadline.Before(until) {
			d.Deadline = until
		}
	})
}

func (n *node) Pin(_ context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	return n.hold(id, volume.Pinned, until, by, why)
}

func (n *node) Unpin(_ context.Context, id volume.ID, _ string) (volume.Description, error) {
	return n.decide(id, func(d *volume.Description) { d.Record.Hold = volume.Hold{} })
}

func (n *node) Release(_ context.Context, id volume.ID, by, why string) (volume.Description, error) {
	return n.hold(id, volume.Released, time.Now().Add(10*time.Minute), by, why)
}

func (n *node) Purge(ctx context.Context, id volume.ID, by, why string) error {
	d, err := n.Describe(ctx, id)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.volumes = slices.DeleteFunc(n.volumes, func(d volume.Description) bool { return d.Record.ID == id })
	n.gone = append(n.gone, volume.Tombstone{
		Number: uint64(len(n.gone) + 1), Record: d.Record, Size: d.Size,
		Gone: time.Now(), Kept: time.Since(d.Record.Unpublished).Truncate(time.Hour),
		Reason: volume.Purged, By: by, Why: why,
	})
	return nil
}

// Gone returns pages that hold few volumes.
func (n *node) Gone(_ context.Context, s volume.GoneSelection) (volume.GonePage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var page volume.GonePage
	for _, t := range slices.Backward(n.gone) {
		if s.Below != 0 && t.Number >= s.Below || !s.Selects(t.Record) || s.ID != "" && s.ID != t.Record.ID {
			continue
		}
		if len(page.Tombstones) == min(n.pages, s.Limit) {
			page.Next = page.Tombstones[len(page.Tombstones)-1].Number
			break
		}
		page.Tombstones = append(page.Tombstones, t)
	}
	return page, nil
}

func (n *node) Usage(context.Context, volume.Record, func(context.Context) error) (volume.Size, error) {
	return n.usage, nil
}

// result is what a verb wrote, and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

// katbox runs a verb in this process.
func katbox(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

// mustPrint checks that a verb succeeds, and what it writes.
func mustPrint(t *testing.T, want string, args ...string) {
	t.Helper()
	r := katbox(t, args...)
	if strings.Contains(want, " ago") {
		r.stdout, want = inHours(r.stdout), inHours(want)
	}
	if r.code != 0 || r.stderr != "" || r.stdout != want {
		t.Errorf("katbox %q: exit code %d, stderr %q, stdout of %d bytes\n%.1000s\nwant %d bytes\n%.1000s",
			args, r.code, r.stderr, len(r.stdout), r.stdout, len(want), want)
	}
}

// inHours returns a text without the minutes of its durations, and without the width of columns that they make: a test
// takes some of them.
func inHours(text string) string {
	text = regexp.MustCompile(`([0-9]h)[0-9]+m`).ReplaceAllString(text, "$1")
	return regexp.MustCompile(` {3,}`).ReplaceAllString(text, "  ")
}

// mustFail checks the exit code, that there is one line on stderr with all of the texts, and that
// nothing is on stdout.
func mustFail(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	r := katbox(t, args...)
	if r.code != code || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "katbox") {
		t.Errorf("katbox %q: exit code %d, want %d; stdout %q; stderr %q", args, r.code, code, r.stdout, r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("katbox %q: stderr does not have %q: %s", args, text, r.stderr)
		}
	}
}

// process prepares a verb as a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asVerb+"=1")
	return cmd
}

// codeOfProcess returns the exit code as a shell reports it.
func codeOfProcess(t *testing.T, err error) int {
	t.Helper()
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	status := exit.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}
