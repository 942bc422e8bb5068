package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/soak/testbed"
)

func TestThreadLimit(t *testing.T) {
	const pod = "/kubepods.slice/pod1/container"
	for name, tt := range map[string]struct {
		groups string
		files  map[string]string
		want   int
		fails  bool
	}{
		"no cgroups": {"", nil, 0, false},
		"none says":  {"0::" + pod + "\n", nil, 0, false},
		"no limit":   {"0::" + pod + "\n", map[string]string{pod: "max\n"}, 0, false},
		"version 2":  {"0::" + pod + "\n", map[string]string{pod: "512\n"}, 512, false},
		"version 1": {"9:name=systemd:/x\n8:pids:" + pod + "\n4:memory:/y\n0::/\n",
			map[string]string{"pids" + pod: "1024\n"}, 1024, false},
		"the pod's": {"0::" + pod + "\n", map[string]string{pod: "max\n", "/kubepods.slice/pod1": "1024\n",
			"/kubepods.slice": "30000\n"}, 1024, false},
		"own top":              {"0::/\n", map[string]string{"/": "4096\n"}, 4096, false},
		"own top, version 1":   {"8:pids:" + pod + "\n", map[string]string{"pids": "2048\n"}, 2048, false},
		"outside of its own":   {"0::/../other\n", map[string]string{"/": "100\n"}, 100, false},
		"another controller's": {"4:memory:" + pod + "\n", map[string]string{pod: "10\n"}, 0, false},
		"nothing allowed":      {"0::/\n", map[string]string{"/": "0\n"}, 1, false},
		"not a number":         {"0::/\n", map[string]string{"/": "many\n"}, 0, true},
		"negative":             {"0::/\n", map[string]string{"/": "-1\n"}, 0, true},
		"not a line":           {"pids\n", nil, 0, true},
		"no file":              {"-", nil, 0, true},
	} {
		root := fstest.MapFS{}
		if tt.groups != "-" {
			root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(tt.groups)}
		}
		for group, most := range tt.files {
			root[strings.TrimPrefix(filepath.Join("/sys/fs/cgroup", group, "pids.max"), "/")] = &fstest.MapFile{Data: []byte(most)}
		}
		if got, err := threadLimit(root); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %d, %v; want %d, failure %t", name, got, err, tt.want, tt.fails)
		}
	}
	if _, err := threadLimit(os.DirFS("/")); err != nil {
		t.Errorf("of this process: %v", err)
	}
}

// groupVariable in the environment is a cgroup that the daemon enters first.
const groupVariable = "KATBOX_TEST_CGROUP"

// enterGroup moves this process to the cgroup that the environment names, if any.
func enterGroup() {
	group := os.Getenv(groupVariable)
	if group == "" {
		return
	}
	if err := writeExisting(filepath.Join(group, "cgroup.procs"), "0"); err != nil {
		panic(err)
	}
}

// limitedGroup makes a cgroup with a limit of its controller, until the end of the test. files are
// what versions 1 and 2 of cgroups call that limit.
func limitedGroup(t testing.TB, controller string, limit int, files ...string) string {
	t.Helper()
	roottest.Need(t)
	var why error
	for _, parent := range []string{filepath.Join("/sys/fs/cgroup", controller), "/sys/fs/cgroup"} {
		group := filepath.Join(parent, fmt.Sprintf("katbox-test-%d", os.Getpid()))
		err := os.Mkdir(group, 0o755)
		if err != nil {
			why = errors.Join(why, err)
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		})
		for _, file := range files {
			if err = writeExisting(filepath.Join(group, file), fmt.Sprint(limit)); err == nil {
				return group
			}
			why = errors.Join(why, err)
		}
	}
	roottest.Lacks(t, "a limit of threads by cgroup", why)
	return ""
}

func writeExisting(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestThreadsWithinTheLimit: with the kubelet's file system hung, each publish keeps a
// thread. Those that would take the last ones are refused: without a thread that it
// needs, Go ends the process.
func TestThreadsWithinTheLimit(t *testing.T) {
	const threads = 160
	t.Setenv(groupVariable, limitedGroup(t, "pids", threads, "pids.max"))
	mnt := roottest.FileSystem(t, "ext4", 100)
	d := newDaemon(t, "--kubelet-dir", mnt)
	roottest.UnmountBelowAtEnd(t, mnt)
	d.start()
	at := func(i int) testbed.Volume { return testbed.Volume{Kubelet: mnt, Pod: podName(i), Name: "scratch"} }
	for i := range 2 * threads {
		must(t, at(i).MakeTargetDir())
	}
	thaw := freeze(t, mnt)
	var calls sync.WaitGroup
	var published, refused atomic.Int64
	for i := range 2 * threads {
		calls.Go(func() {
			switch _, err := d.node.NodePublishVolume(t.Context(), testbed.Publish(volumeID(i), at(i).Target(), podName(i), nil)); status.Code(err) {
			case codes.OK:
				published.Add(1)
			case codes.Unavailable:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	d.eventually("all but those that hang are refused", func() bool { return refused.Load() == 3*threads/2 })
	thaw()
	calls.Wait()
	if published.Load() != threads/2 {
		t.Errorf("%d published, want those that hung, %d", published.Load(), threads/2)
	}
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, stderr %q, want 0 and nothing", code, d.stderr)
	}
}
