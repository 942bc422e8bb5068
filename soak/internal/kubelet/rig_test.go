package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// rig is a kubelet and a driver, and somebody who listens.
type rig struct {
	t       *testing.T
	root    string
	driver  *driver
	api     *API
	kubelet *Kubelet
	attach  *Attachments
	// mounted is what answers whether a path is a mount point, if it is not nil.
	mounted func(string) (bool, error)

	mu      sync.Mutex
	told    []string
	calls   []history.Call
	changed chan struct{}
	// onCall is called with each call, if it is not nil.
	onCall func(*Volume, history.Call)
}

func newRig(t *testing.T, change func(*driver)) *rig {
	t.Helper()
	// A socket's path must be short.
	root, err := os.MkdirTemp("", "k")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, root: root, driver: newDriver(), api: &API{}, changed: make(chan struct{})}
	if change != nil {
		change(r.driver)
	}
	t.Cleanup(func() {
		if wrong := r.driver.wrong; len(wrong) > 0 {
			t.Errorf("the driver did not like %q", wrong)
		}
		os.RemoveAll(root)
	})
	r.driver.serve(t, r.socket())
	return r
}

func (r *rig) socket() string { return filepath.Join(r.root, "s") }

func (r *rig) timing() Timing {
	return Timing{Period: time.Millisecond, FirstWait: 3 * time.Millisecond, LongestWait: 20 * time.Millisecond}
}

func (r *rig) start() {
	r.t.Helper()
	isMounted := r.mounted
	if isMounted == nil {
		isMounted = r.driver.isMounted
	}
	k, err := Start(Config{
		Root: r.root, Socket: r.socket(), Driver: "soak.example.com", Node: "node",
		API: r.api, Listener: r, Mounted: isMounted, Timing: r.timing(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.kubelet = k
	r.t.Cleanup(k.Crash)
}

func (r *rig) startAttachments() {
	r.t.Helper()
	a, err := StartAttachments(AttachmentsConfig{Socket: r.socket(), API: r.api, Listener: r, Timing: r.timing()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.attach = a
	r.t.Cleanup(a.Stop)
}

// create puts a pod with the volumes on the node. Their IDs are unique to it but
// for persistent ones.
func (r *rig) create(uid string, volumes ...workload.Volume) *Pod {
	for i := range volumes {
		if volumes[i].ID == "" {
			volumes[i].ID = uid + "-" + volumes[i].Name
		}
	}
	p := NewPod(r.root, filepath.Join(r.root, "work"), workload.Pod{
		UID: uid, Namespace: "batch", Name: "pod-" + uid, Volumes: volumes,
	})
	r.api.Create(p)
	return p
}

func inline(name string) workload.Volume { return workload.Volume{Name: name} }

func persistent(handle string) workload.Volume {
	return workload.Volume{Name: handle, ID: handle, Persistent: true}
}

func (r *rig) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf(format, args...))
	r.signal()
}

func (r *rig) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rig) Called(v *Volume, c history.Call) {
	r.mu.Lock()
	r.calls = append(r.calls, c)
	hook := r.onCall
	r.signal()
	r.mu.Unlock()
	if hook != nil {
		hook(v, c)
	}
	if c.Method.OfVolume() {
		r.tell("%s %s: %s", c.Method, v.Plan.ID, c.Code())
	}
}
func (r *rig) Mounted(p *Pod)                   { r.tell("pod %s mounted", p.Plan.UID) }
func (r *rig) Unmounted(v *Volume, how Outcome) { r.tell("volume %s %s", v.Plan.ID, how) }
func (r *rig) Gone(p *Pod)                      { r.tell("pod %s gone", p.Plan.UID) }

func (r *rig) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// hangLimit only ends tests that would never end.
const hangLimit = 2 * time.Minute

// await waits until somebody told the line so many times.
func (r *rig) await(line string, times int) {
	r.t.Helper()
	if !r.until(func() bool { return count(r.told, line) >= times }) {
		r.t.Fatalf("%q was not told %d times, but %q", line, times, r.heard())
	}
}

// until waits until the condition holds, which is asked under the lock whenever
// something was told.
func (r *rig) until(holds func() bool) bool {
	limit := time.After(hangLimit)
	for {
		r.mu.Lock()
		ok, changed := holds(), r.changed
		r.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-limit:
			return false
		}
	}
}

// awaitCall waits until the driver got the call so many times.
func (r *rig) awaitCall(line string, times int) {
	r.t.Helper()
	limit := time.After(hangLimit)
	for {
		r.driver.mu.Lock()
		n, changed := count(r.driver.log, line), r.driver.changed
		r.driver.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-changed:
		case <-limit:
			r.t.Fatalf("the driver was not called with %q %d times, but with %q", line, times, r.driver.seen())
		}
	}
}

func count(list []string, line string) int {
	n := 0
	for _, one := range list {
		if one == line {
			n++
		}
	}
	return n
}

// empty checks that nothing is left below the kubelet's directory.
func (r *rig) empty() {
	r.t.Helper()
	for _, dir := range []string{podsDir(r.root), devicesDir(r.root, "soak.example.com")} {
		names, err := readDir(dir)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(names) > 0 {
			r.t.Errorf("%q is left in %s", names, dir)
		}
	}
}

// equal compares the calls that the driver got, but for the questions.
func (r *rig) equal(want ...string) {
	r.t.Helper()
	got := slices.DeleteFunc(r.driver.seen(), func(s string) bool {
		return strings.HasPrefix(s, "capabilities") || strings.HasPrefix(s, "info")
	})
	if !slices.Equal(got, want) {
		r.t.Errorf("the driver was called with\n%q, want\n%q", got, want)
	}
}

// heardAll checks all that was told.
func (r *rig) heardAll(want ...string) {
	r.t.Helper()
	if got := r.heard(); !slices.Equal(got, want) {
		r.t.Errorf("told\n%q, want\n%q", got, want)
	}
}
