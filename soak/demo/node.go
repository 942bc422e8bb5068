package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/testbed"
)

const (
	mebibyte = 1 << 20
	// diskSize is that of the node's disk. What the pods write is chosen for it.
	diskSize = 64 * mebibyte
	// diskInodes is how many files and directories fit on it.
	diskInodes = 4096
)

// node is one node: a disk, the daemon, and a stand-in for the kubelet.
type node struct {
	binary   string
	lifespan time.Duration
	layout   testbed.Layout
	disk     *host.Disk
	driver   *daemon.Binary
	api      *kubelet.API
	kubelet  *kubelet.Kubelet
	podsAPI  *kubelet.PodsAPI

	mu   sync.Mutex
	pods map[*kubelet.Pod]*pod
}

// policy keeps no logs of the imports: they print nothing, and the lists stay short.
const policy = "namespaces: [{match: [etl], logs: false}]\n"

// newNode makes the directories and the disk, and starts nothing.
func newNode(binary string, lifespan time.Duration) (*node, error) {
	l, err := testbed.MakeLayout("", "katbox.log")
	if err != nil {
		return nil, err
	}
	disk, err := host.MakeDisk(l.Work, l.Image, host.Tmpfs, diskSize, diskInodes)
	if err != nil {
		return nil, errors.Join(err, l.Remove())
	}
	n := &node{binary: binary, lifespan: lifespan, layout: l, disk: disk, api: &kubelet.API{}, pods: make(map[*kubelet.Pod]*pod)}
	n.driver = daemon.New(daemon.Config{Binary: binary, Log: l.Log, Socket: l.Socket,
		// A viewer should not wait the usual five seconds.
		Args: l.Flags("--afterlifespan", lifespan.String(), "--pruneinterval", "200ms", "--logs", "on", "--pod-logs-dir", n.logs(),
			"--policy-file", n.policy()),
	})
	return n, nil
}

// logs is the directory in which the kubelet has the logs of pods, and policy the daemon's policy file.
func (n *node) logs() string   { return filepath.Join(n.layout.Dir, "logs") }
func (n *node) policy() string { return filepath.Join(n.layout.Dir, "policy.yaml") }

// start starts the daemon, and then the kubelet, which says how pods end.
func (n *node) start(ctx context.Context) error {
	err := errors.Join(os.Mkdir(n.logs(), 0o755), os.WriteFile(n.policy(), []byte(policy), 0o600))
	if err != nil {
		return err
	}
	if n.podsAPI, err = kubelet.StartPodsAPI(n.layout.Kubelet, daemon.Name); err != nil {
		return err
	}
	if err := n.driver.Start(ctx); err != nil {
		return err
	}
	n.kubelet, err = kubelet.Start(kubelet.Config{
		Root: n.layout.Kubelet, Socket: n.layout.Socket, Driver: daemon.Name, Node: testbed.Node,
		API: n.api, Listener: n, Mounted: host.MountedAt,
	})
	return err
}

// tearDown ends everything that runs, unmounts and removes everything.
func (n *node) tearDown() error {
	n.mu.Lock()
	for _, p := range n.pods {
		p.kill()
	}
	n.mu.Unlock()
	if n.kubelet != nil {
		n.kubelet.Crash()
	}
	if n.podsAPI != nil {
		n.podsAPI.Stop()
	}
	n.driver.Kill()
	// The disk is Close's.
	err := host.UnmountBelow(n.layout.Dir, stepLimit, n.layout.Work)
	if err == nil {
		err = n.disk.Close()
	}
	if err != nil {
		return fmt.Errorf("clean up: %w; remove %s yourself", err, n.layout.Dir)
	}
	return n.layout.Remove()
}

// complaints are the warnings and errors of the daemon's log, for an error: the
// log goes with the node.
func (n *node) complaints() string {
	log, err := os.ReadFile(n.layout.Log)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
			b.WriteString("\n" + strings.TrimSuffix(line, "\n"))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nthe daemon's log says:" + b.String()
}

// Called, Mounted, Unmounted and Gone make the node a [kubelet.Listener].

// Called does nothing: the kubelet repeats what failed.
func (n *node) Called(*kubelet.Volume, history.Call) {}

// Mounted lets the container of a pod begin.
func (n *node) Mounted(k *kubelet.Pod) {
	if p := n.of(k); p != nil {
		p.mounted()
	}
}

// Unmounted does nothing; Gone follows it.
func (n *node) Unmounted(*kubelet.Volume, kubelet.Outcome) {}

// Gone says that the node has nothing of a pod left but its files.
func (n *node) Gone(k *kubelet.Pod) {
	if p := n.of(k); p != nil {
		p.gone()
	}
}

// of is the pod that the kubelet means, nil for one that is not of the demo.
func (n *node) of(k *kubelet.Pod) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[k]
}
