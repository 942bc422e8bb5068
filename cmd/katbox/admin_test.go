package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// admin returns a client of the daemon.
func (d *daemon) admin() *api.Client {
	c := api.Dial(d.layout().Admin)
	d.t.Cleanup(c.Close)
	return c
}

// retainLarge makes a retained volume with a file that no buffer between daemon and client holds.
func (d *daemon) retainLarge(id string, size int) {
	d.t.Helper()
	d.publishLarge(id, size)
	d.unpublish(testPod, id)
}

func (d *daemon) publishLarge(id string, size int) {
	d.t.Helper()
	d.publishRepeated(testPod, id)
	must(d.t, os.WriteFile(filepath.Join(d.target(testPod), "large"), bytes.Repeat([]byte("0123456789abcdef"), size/16), 0o600))
}

// stall begins a download and does not read on.
func (d *daemon) stall(id string, q api.BytesQuery) *api.Stream {
	d.t.Helper()
	s, err := d.tryStall(id, q)
	must(d.t, err)
	return s
}

func (d *daemon) tryStall(id string, q api.BytesQuery) (*api.Stream, error) {
	s, err := d.admin().Bytes(d.t.Context(), id, q)
	if err != nil {
		return nil, err
	}
	d.t.Cleanup(func() { s.Close() })
	_, err = io.ReadFull(s, make([]byte, 16))
	return s, err
}

// handles counts the daemon's handles whose path contains part.
func (d *daemon) handles(part string) (count int) {
	d.t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.process.PID()))
	must(d.t, err)
	for _, handle := range all {
		if target, err := os.Readlink(handle); err == nil && strings.Contains(target, part) {
			count++
		}
	}
	return count
}

// wantCut reads the rest of a stream that must not look complete.
func wantCut(t *testing.T, s *api.Stream) {
	t.Helper()
	if n, err := io.Copy(io.Discard, s); !errors.Is(err, api.ErrCut) {
		t.Errorf("after %d bytes: %v, want that the stream was cut", n, err)
	}
}

// TestExpiryEndsADownload: a reader that stalls does not keep the space of a volume whose lifespan
// is over.
func TestExpiryEndsADownload(t *testing.T) {
	const size = 32 << 20
	for name, q := range map[string]api.BytesQuery{"file": {Path: "large"}, "archive": {Archive: true}} {
		t.Run(name, func(t *testing.T) {
			const lifespan = 2 * time.Second
			d := newDaemon(t, "--afterlifespan", lifespan.String())
			must(t, os.Mkdir(d.workdir(), 0o750))
			roottest.Tmpfs(t, d.workdir(), 0)
			roottest.UnmountBelowAtEnd(t, d.dir)
			d.start()
			free := func() int64 {
				var st unix.Statfs_t
				must(t, unix.Statfs(d.workdir(), &st))
				return int64(st.Bavail) * st.Bsize
			}
			before := free()
			var s *api.Stream
			for s == nil {
				d.publishLarge(volumeID(1), size)
				began := time.Now()
				d.unpublish(testPod, volumeID(1))
				stalled, err := d.tryStall(volumeID(1), q)
				switch opened := d.handles("/large") > 0; {
				case err == nil && opened:
					s = stalled
				case time.Since(began) < lifespan:
					t.Fatalf("%v; the daemon has the file open: %t, so this shows nothing", err, opened)
				default: // so slow a machine that it has expired by then
					d.eventually("the volume is deleted", d.gone(testPod, volumeID(1)))
				}
			}
			d.eventually("the volume is deleted", d.gone(testPod, volumeID(1)))
			d.eventually("the daemon has closed the file", func() bool { return d.handles("/large") == 0 })
			d.eventually("the space is free", func() bool { return free() > before-size/2 })
			wantCut(t, s)
			_, err := d.admin().Bytes(t.Context(), volumeID(1), q)
			if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != 404 && e.Code != 410 {
				t.Errorf("read what is gone: %v, want 404 or 410", err)
			}
		})
	}
}

// TestPublishEndsADownload: the pod gets its volume at once, and the reader learns of it.
func TestPublishEndsADownload(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	d.retainLarge(volumeID(1), 16<<20)
	s := d.stall(volumeID(1), api.BytesQuery{Path: "large"})
	d.publish(testPod, volumeID(1))
	d.eventually("the daemon has closed the file", func() bool { return d.handles("/large") == 0 })
	wantCut(t, s)
	_, err := d.admin().Bytes(t.Context(), volumeID(1), api.BytesQuery{Path: "large"})
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != 409 {
		t.Errorf("read what is published: %v, want 409", err)
	}
	d.unpublish(testPod, volumeID(1))
	again, err := d.admin().Bytes(t.Context(), volumeID(1), api.BytesQuery{Path: "large"})
	must(t, err)
	defer again.Close()
	if n, err := io.Copy(io.Discard, again); err != nil || n != 16<<20 {
		t.Errorf("retained again: %d bytes, %v", n, err)
	}
}

// TestManyDownloads: the 16 that a namespace gets run, the others are refused at once, and pods start and end meanwhile.
func TestManyDownloads(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	d.retainLarge(volumeID(1), 16<<20)
	var (
		mu       sync.Mutex
		running  []*api.Stream
		refused  int
		requests sync.WaitGroup
	)
	client := d.admin()
	for range 100 {
		requests.Go(func() {
			s, err := client.Bytes(t.Context(), volumeID(1), api.BytesQuery{Path: "large"})
			mu.Lock()
			defer mu.Unlock()
			e := (*api.Error)(nil)
			switch {
			case err == nil:
				running = append(running, s)
			case errors.As(err, &e) && e.Code == 429 && e.RetryAfter == time.Second:
				refused++
			default:
				t.Error(err)
			}
		})
	}
	requests.Wait()
	if len(running) != 16 || refused != 84 {
		t.Errorf("%d run and %d were refused, want 16 and 84", len(running), refused)
	}
	const other = "other-pod"
	d.makePod(other)
	d.publish(other, volumeID(2))
	d.writeMarker(other)
	d.unpublish(other, volumeID(2))
	for _, s := range running {
		if n, err := io.Copy(io.Discard, s); err != nil || n != 16<<20 {
			t.Errorf("%d bytes, %v", n, err)
		}
		s.Close()
	}
	d.eventually("the slots are free", func() bool {
		s, err := client.Bytes(t.Context(), volumeID(1), api.BytesQuery{Path: "large"})
		if err != nil {
			return false
		}
		s.Close()
		return true
	})
}

// TestReadingChangesNothing: not the times of the files, and not the deadline.
func TestReadingChangesNothing(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	d.retainLarge(volumeID(1), 1<<20)
	path := filepath.Join(d.data(testPod, volumeID(1)), "large")
	must(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0)))
	client := d.admin()
	stat := func() syscall.Stat_t {
		var st syscall.Stat_t
		must(t, syscall.Stat(path, &st))
		return st
	}
	before := stat()
	volumeBefore, err := client.Volume(t.Context(), volumeID(1))
	must(t, err)
	for _, q := range []api.BytesQuery{{Path: "large"}, {Path: "large", TailLines: 3}, {Archive: true}} {
		s, err := client.Bytes(t.Context(), volumeID(1), q)
		must(t, err)
		_, err = io.Copy(io.Discard, s)
		must(t, err, s.Close())
	}
	_, err = client.Files(t.Context(), volumeID(1), api.FilesQuery{})
	must(t, err)
	if after := stat(); after != before {
		t.Errorf("the file was %+v, and is %+v", before, after)
	}
	volumeAfter, err := client.Volume(t.Context(), volumeID(1))
	must(t, err)
	if !volumeAfter.ExpiresAt.Equal(*volumeBefore.ExpiresAt) || !volumeAfter.RetainedAt.Equal(*volumeBefore.RetainedAt) {
		t.Errorf("the volume was %+v, and is %+v", volumeBefore, volumeAfter)
	}
	must(t, client.Purge(t.Context(), volumeID(1), ""))
	if exists(d.data(testPod, volumeID(1))) {
		t.Error("removed, and still in its place")
	}
}

// TestAdminSocket: only root may use it, a crash leaves nothing in the way, and a stop does not wait
// for readers.
func TestAdminSocket(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	d.crash()
	serving := func() bool {
		_, err := d.admin().List(t.Context(), api.Query{})
		return err == nil
	}
	d.eventually("serving", serving)
	if info, err := os.Lstat(d.layout().Admin); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v, want a socket of mode 0600", info.Mode(), err)
	}
	must(t, os.Remove(d.layout().Admin))
	d.eventually("serving again", serving)
	d.retainLarge(volumeID(1), 16<<20)
	s := d.stall(volumeID(1), api.BytesQuery{Path: "large"})
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %s", code, d.stderr)
	}
	wantCut(t, s)
	if exists(d.layout().Admin) {
		t.Error("the socket is still there")
	}

	must(t, os.WriteFile(d.layout().Admin, nil, 0o600))
	if line := d.fails(); !strings.Contains(line, "--admin-socket") || !strings.Contains(line, "not a socket") {
		t.Errorf("%q does not say what is wrong", line)
	}
	d.flags = append(d.flags, "--admin-socket", "none")
	d.start()
	if _, err := d.admin().List(t.Context(), api.Query{}); err == nil {
		t.Error("there should be no such socket")
	}
}

// TestAdminSocketWaitsForRoom: the kubelet is served meanwhile.
func TestAdminSocketWaitsForRoom(t *testing.T) {
	d := newDaemon(t)
	full := filepath.Join(d.dir, "full")
	must(t, os.Mkdir(full, 0o700))
	roottest.Mount(t, "tmpfs", full, "tmpfs", 0, "nr_inodes=2")
	must(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	d.flags = append(d.flags, "--admin-socket", filepath.Join(full, "admin.sock"))
	d.start()
	d.publish(testPod, volumeID(1))
	if exists(filepath.Join(full, "admin.sock")) {
		t.Fatal("there was room, so this shows nothing")
	}
	must(t, os.Remove(filepath.Join(full, "file")))
	d.eventually("serving", func() bool {
		_, err := api.Dial(filepath.Join(full, "admin.sock")).List(t.Context(), api.Query{})
		return err == nil
	})
}

func TestReport(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "90m")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=never-shown")
	d.start()
	d.publish(testPod, volumeID(1))
	var text string
	d.eventually("a report", func() bool {
		r, err := d.admin().Report(context.Background())
		if err != nil {
			return false
		}
		defer r.Close()
		all, err := io.ReadAll(r)
		text = string(all)
		return err == nil
	})
	for _, want := range []string{"## Katbox", "node      node-1", "--afterlifespan=1h30m", "--admin-socket=auto", "## Disk",
		`katbox_volumes{phase="Published"} 1`, "## Volumes that are changing or stuck", "there is no --array-endpoint", d.target(testPod),
		"1 in all", "RssAnon",
		"# TYPE katbox_csi_operations_in_flight gauge"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "never-shown") || strings.Contains(text, "cannot be told") {
		t.Errorf("the report has a secret, or lacks a part:\n%s", text)
	}
}
