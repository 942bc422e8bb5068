package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// httpEndpoint returns an address of this test process alone: all of 127.0.0.0/8 belongs to
// the loopback device, and no two processes have the same ID.
func httpEndpoint() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:8080", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
}

// get returns the status code and the text of an answer over HTTP.
func (d *daemon) get(path string) (int, string) {
	d.t.Helper()
	code, body, err := httpGet(path)
	if err != nil {
		d.t.Fatal(err)
	}
	return code, body
}

func httpGet(path string) (int, string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + httpEndpoint() + path)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

func (d *daemon) wantAnswer(path string, code int, part string) {
	d.t.Helper()
	if got, body := d.get(path); got != code || !strings.Contains(body, part) {
		d.t.Errorf("%s: %d %q, want %d and %q", path, got, body, code, part)
	}
}

func (d *daemon) metrics() metricstest.Values {
	d.t.Helper()
	code, body := d.get("/metrics")
	if code != http.StatusOK {
		d.t.Fatalf("/metrics: %d %s", code, body)
	}
	return metricstest.Parse(d.t, strings.NewReader(body))
}

// calls returns the name of the metric that counts calls.
func calls(method, code string) string {
	return fmt.Sprintf("katbox_csi_operation_duration_seconds_count{code=%q,method=%q}", code, method)
}

// TestMetricsOfTheDaemon compares the daemon's metrics with what happened.
func TestMetricsOfTheDaemon(t *testing.T) {
	d := newDaemon(t, "--http-endpoint", httpEndpoint(), "--headroom", "0.001", "--pruneinterval", "100ms")
	const volumes = 5
	for i := range volumes {
		d.makePod(podName(i))
	}
	d.start()
	d.eventually("ready", func() bool { code, _ := d.get("/readyz"); return code == http.StatusOK })
	d.wantAnswer("/healthz", http.StatusOK, "ok")
	d.wantAnswer("/", http.StatusOK, "/metrics")
	d.wantAnswer("/other", http.StatusNotFound, "")

	for i := range volumes {
		d.publish(podName(i), volumeID(i))
		d.writeMarker(podName(i))
	}
	request := d.request(podName(0), volumeID(0))
	request.TargetPath = ""
	if _, err := d.node.NodePublishVolume(t.Context(), request); err == nil {
		t.Fatal("published without a target")
	}
	d.unpublish(podName(0), volumeID(0))
	d.unpublish(podName(1), volumeID(1))
	d.unpublish(podName(1), volumeID(1))
	got := d.metrics()
	got.Want(t, "after the calls", metricstest.Values{
		calls("NodePublishVolume", "OK"): volumes, calls("NodePublishVolume", "InvalidArgument"): 1, calls("NodeUnpublishVolume", "OK"): 3,
		calls("Probe", "OK"): 1, "katbox_csi_operations_in_flight": 0,
		`katbox_volumes{phase="Published"}`: volumes - 2, `katbox_volumes{phase="Retained"}`: 2, "katbox_mounts": volumes - 2,
		`katbox_evictions_total{reason="expired"}`: 0, "katbox_trash_entries": 0, "katbox_stuck_volumes{phase=\"Unpublishing\"}": 0,
		"katbox_store_commit_errors_total": 0, "katbox_filesystem_errors_total": 0,
	})
	d.eventually("all pods seen", func() bool { return d.metrics()["katbox_pods_directory_entries"] == volumes+1 })
	// XFS makes inodes out of free space, so their number changes with what others write.
	d.eventually("the disk is as it is", func() bool {
		got = d.metrics()
		var fs unix.Statfs_t
		if err := unix.Statfs(d.workdir(), &fs); err != nil {
			t.Fatal(err)
		}
		return got["katbox_filesystem_size_bytes"] == float64(fs.Blocks)*float64(fs.Bsize) && got["katbox_filesystem_inodes"] == float64(fs.Files)
	})
	if free := got["katbox_filesystem_free_bytes"]; free <= 0 || free > got["katbox_filesystem_size_bytes"] {
		t.Errorf("%v bytes free", free)
	}
	d.eventually("the records are on the disk", func() bool { return d.metrics()["katbox_store_commit_changes_sum"] >= volumes+2 })
	if took := d.metrics()["katbox_store_commit_duration_seconds_sum"]; took <= 0 {
		t.Errorf("the records were committed in %v s", took)
	}
	if got["process_resident_memory_bytes"] == 0 || got["go_goroutines"] == 0 {
		t.Error("the metrics of the process or of Go are missing")
	}
	if _, there := got["katbox_registered"]; there {
		t.Error("katbox_registered is there, and the daemon does not register")
	}

	d.crash()
	d.metrics().Want(t, "after a crash", metricstest.Values{
		calls("Probe", "OK"): 1, `katbox_volumes{phase="Published"}`: volumes - 2, `katbox_volumes{phase="Retained"}`: 2,
		"katbox_mounts": volumes - 2,
	})
	if code := d.signal(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}

// TestMetricsOfExpiredVolumes: the daemon counts what it deletes and erases by itself.
func TestMetricsOfExpiredVolumes(t *testing.T) {
	d := newDaemon(t, "--http-endpoint", httpEndpoint(), "--afterlifespan", "100ms")
	d.start()
	d.publish(testPod, volumeID(1))
	d.writeMarker(testPod)
	d.unpublish(testPod, volumeID(1))
	want := metricstest.Values{
		`katbox_evictions_total{reason="expired"}`: 1, "katbox_deadline_lateness_seconds_count": 1, "katbox_erased_entries_total": 2,
		"katbox_erased_volumes_total": 1, `katbox_volumes{phase="Retained"}`: 0, `katbox_volumes{phase="Deleting"}`: 0, "katbox_trash_entries": 0,
	}
	d.eventually("the volume is deleted and erased, and that is counted", func() bool {
		got := d.metrics()
		for name, value := range want {
			if got[name] != value {
				return false
			}
		}
		return true
	})
	d.metrics().Want(t, "after its lifespan", want)
}

func TestHTTPEndpointInUse(t *testing.T) {
	d := newDaemon(t, "--http-endpoint", httpEndpoint())
	d.start()
	other := newDaemon(t, "--http-endpoint", httpEndpoint())
	if line := other.fails(); !strings.Contains(line, "--http-endpoint") || !strings.Contains(line, "in use") {
		t.Errorf("stderr %q", line)
	}
	if exists(other.workdir()) {
		t.Error("it has begun all the same")
	}
}

// TestHealthFromTheFirstToTheLast: the listener exists before and after everything else,
// and reports the state of the daemon.
func TestHealthFromTheFirstToTheLast(t *testing.T) {
	d := newDaemon(t, "--http-endpoint", httpEndpoint())
	socket := d.layout().Socket
	told := map[string][]string{}
	stdout := &hookedLog{at: func(message string) {
		for _, path := range []string{"/healthz", "/readyz"} {
			code, body, err := httpGet(path)
			told[message] = append(told[message], fmt.Sprintf("%d %.8s %v socket:%t", code, body, err, exists(socket)))
		}
	}, messages: []string{"recovered", "ready", "stopped"}}
	o, err := parse(d.command().Args[1:], io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	log, err := newLogger("info", "json", stdout)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- live(ctx, o, metrics.New(version, revision), log) }()
	d.eventually("ready", func() bool { code, _, err := httpGet("/readyz"); return err == nil && code == http.StatusOK })
	d.wantAnswer("/healthz", http.StatusOK, "ok")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, _, err := httpGet("/readyz"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end: %v, want a refused connection", err)
	}
	for message, want := range map[string][]string{
		"recovered": {"503 starting <nil> socket:false", "503 starting <nil> socket:false"},
		"ready":     {"200 ok\n <nil> socket:true", "503 starting <nil> socket:true"},
		"stopped":   {"503 stopping <nil> socket:false", "503 stopping <nil> socket:false"},
	} {
		if got := told[message]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("when it was %s: %q, want %q", message, got, want)
		}
	}
}

// hookedLog is the daemon's log. The daemon waits for the end of a hook.
type hookedLog struct {
	mu       sync.Mutex
	at       func(message string)
	messages []string
}

func (l *hookedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, message := range l.messages {
		if bytes.Contains(line, []byte(`"msg":"`+message+`"`)) {
			l.at(message)
		}
	}
	return len(line), nil
}

// TestHealthOfAFullDisk: the daemon stays healthy, because a restart would make no room.
func TestHealthOfAFullDisk(t *testing.T) {
	mnt := roottest.FileSystem(t, "ext4", 100)
	d := newDaemon(t, "--http-endpoint", httpEndpoint(), "--workdir", filepath.Join(mnt, "work"))
	roottest.UnmountBelowAtEnd(t, mnt)
	d.start()
	fill(t, filepath.Join(mnt, "filler"))
	commits := func() float64 { return d.metrics()["katbox_store_commit_duration_seconds_count"] }
	before := commits()
	d.eventually("the store was tried", func() bool {
		d.wantAnswer("/healthz", http.StatusOK, "ok")
		return commits() >= before+2
	})
}

// TestHealthOfAFrozenDisk: the actors answer and the disk does not.
func TestHealthOfAFrozenDisk(t *testing.T) {
	mnt := roottest.FileSystem(t, "ext4", 100)
	d := newDaemon(t, "--http-endpoint", httpEndpoint(), "--workdir", filepath.Join(mnt, "work"))
	roottest.UnmountBelowAtEnd(t, mnt)
	d.start()
	d.wantAnswer("/healthz", http.StatusOK, "ok")
	before := d.metrics()["go_goroutines"]
	thaw := freeze(t, mnt)
	const askers = 30
	d.eventually("the last write proves nothing any more", func() bool {
		code, body := d.get("/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "made durable")
	})
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			if code, body, err := httpGet("/healthz"); err != nil || code != http.StatusServiceUnavailable {
				t.Errorf("/healthz: %d %q %v, want 503", code, body, err)
			}
		})
	}
	all.Wait()
	d.wantAnswer("/readyz", http.StatusOK, "ok")
	d.eventually("no request waits", func() bool { return d.metrics()["go_goroutines"] < before+askers/2 })
	thaw()
	d.eventually("well again", func() bool { code, _ := d.get("/healthz"); return code == http.StatusOK })
}

// freeze makes every write to a file system hang, until thaw or the test's end.
func freeze(t *testing.T, mnt string) (thaw func()) {
	t.Helper()
	const fifreeze, fithaw = 0xc0045877, 0xc0045878
	dir, err := os.Open(mnt)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(int(dir.Fd()), fifreeze, 0); err != nil {
		t.Fatalf("freeze %s: %v", mnt, err)
	}
	thaw = sync.OnceFunc(func() {
		if err := errors.Join(unix.IoctlSetInt(int(dir.Fd()), fithaw, 0), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// TestStopDespiteAClientWhoIsSilent: a client that connects and sends nothing does not make
// the stop fail.
func TestStopDespiteAClientWhoIsSilent(t *testing.T) {
	d := newDaemon(t, "--http-endpoint", httpEndpoint())
	d.start()
	silent, err := net.Dial("tcp", httpEndpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	d.wantAnswer("/healthz", http.StatusOK, "ok") // so the silent one was accepted
	if code := d.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, d.stderr)
	}
}
