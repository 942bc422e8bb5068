package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

const driverName = "array.csi.katbox.io"

// node is the kubelet with its pods, and the attach-detach controller.
type node struct {
	found       *findings
	root        string
	api         *kubelet.API
	kubelet     *kubelet.Kubelet
	attachments *kubelet.Attachments

	mu sync.Mutex
	// waits has what each pod waits for, running those whose volume is mounted.
	waits   map[*kubelet.Pod]waits
	running map[*kubelet.Pod]bool
	number  int
}

type waits struct{ mounted, gone chan struct{} }

func startNode(root string, p *programs, found *findings) (*node, error) {
	n := &node{found: found, root: root, api: &kubelet.API{}, waits: map[*kubelet.Pod]waits{}, running: map[*kubelet.Pod]bool{}}
	// After a fault it goes on sooner than the real one.
	timing := kubelet.Timing{LongestWait: 5 * time.Second}
	var err error
	n.attachments, err = kubelet.StartAttachments(kubelet.AttachmentsConfig{
		Socket: p.controllerSocket, API: n.api, Listener: n, Timing: timing,
	})
	if err != nil {
		return nil, err
	}
	n.kubelet, err = kubelet.Start(kubelet.Config{
		Root: root, Socket: p.nodeSocket, Driver: driverName, Node: nodeName, API: n.api, Listener: n, Mounted: host.MountedAt, Timing: timing,
	})
	if err != nil {
		n.attachments.Stop()
	}
	return n, err
}

func (n *node) stop() {
	n.kubelet.Crash()
	n.attachments.Stop()
}

// Called is described at [kubelet.Listener]. Whatever is broken, it passes: no answer says that a call was wrong.
func (n *node) Called(v *kubelet.Volume, c history.Call) {
	if c.Err != nil && history.Final(c.Code()) {
		n.found.broken(history.AnyOrder, v.Story, "volume %s: %s was answered with %v", v.Plan.ID, c.Method, c.Err)
	}
}

// Mounted is described at [kubelet.Listener].
func (n *node) Mounted(p *kubelet.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running[p] = true
	close(n.waits[p].mounted)
}

// Unmounted is described at [kubelet.Listener].
func (n *node) Unmounted(v *kubelet.Volume, how kubelet.Outcome) {
	if how == kubelet.StillMounted {
		n.found.broken(history.NoLeak, v.Story, "volume %s: %s", v.Plan.ID, how)
	}
}

// Gone is described at [kubelet.Listener].
func (n *node) Gone(p *kubelet.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.waits[p].gone)
	delete(n.waits, p)
}

// pod brings a pod up that uses a volume.
func (n *node) pod(v *volume) *kubelet.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.number++
	p := kubelet.NewPod(n.root, filepath.Join(n.root, "work"), workload.Pod{
		UID: fmt.Sprintf("50a40000-0000-4000-8000-%012d", n.number), Namespace: "soak", Name: fmt.Sprintf("pod-%d", n.number),
		Volumes: []workload.Volume{{Name: v.id, ID: v.id, Persistent: true, Block: v.kind == block, Shared: v.shared, Content: v.content}},
	})
	v.calls = p.Volumes[0].Story
	n.waits[p] = waits{make(chan struct{}), make(chan struct{})}
	n.api.Create(p)
	return p
}

const (
	// patience is how long anything may take: longer than all faults together, and then what a lost answer costs.
	patience = 3*time.Minute + 2*requestTimeout
	// look is the pause before another look at what is waited for.
	look = 100 * time.Millisecond
)

// await waits for a pod's volume to be mounted, or for all of the pod to be gone.
func (n *node) await(ctx context.Context, p *kubelet.Pod, gone bool) bool {
	n.mu.Lock()
	w, there := n.waits[p]
	n.mu.Unlock()
	if !there {
		return true
	}
	until, what := w.mounted, "mounted"
	if gone {
		until, what = w.gone, "gone"
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-until:
		return true
	case <-patient.Done():
		if ctx.Err() == nil {
			n.found.broken(history.Completed, p.Volumes[0].Story, "volume %s is not %s after %s", p.Volumes[0].Plan.ID, what, patience)
		}
		return false
	}
}

// finish ends a pod's containers, and waits until nothing is left of it.
func (n *node) finish(ctx context.Context, p *kubelet.Pod) bool {
	n.mu.Lock()
	delete(n.running, p)
	n.mu.Unlock()
	n.api.Finish(p)
	return n.await(ctx, p, true)
}

// inUse are the volumes whose pods run, with a pod of each.
func (n *node) inUse() map[string]*kubelet.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[string]*kubelet.Pod)
	for p := range n.running {
		all[p.Volumes[0].Plan.ID] = p
	}
	return all
}

// detached waits until a volume has no VolumeAttachment any more.
func (n *node) detached(ctx context.Context, v *volume) bool {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := pause.Until(patient, look, func() (bool, error) { return !n.api.HasAttachment(v.id), nil })
	if err != nil && ctx.Err() == nil {
		n.found.broken(Once, nil, "volume %s is not detached after %s", v.id, patience)
	}
	return err == nil
}
