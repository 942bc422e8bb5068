package main

import (
	"context"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
)

// node is the kubelet over its restarts.
type node struct {
	config kubelet.Config

	mu      sync.Mutex
	kubelet *kubelet.Kubelet
}

// start starts a kubelet, which looks around for what the one before it left.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, err := kubelet.Start(n.config)
	if err != nil {
		return err
	}
	n.kubelet = k
	return nil
}

// crash ends the kubelet in the middle of what it does.
func (n *node) crash() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kubelet != nil {
		n.kubelet.Crash()
		n.kubelet = nil
	}
}

// restart is a crash and a start so much later. The containers do not notice.
func (n *node) restart(ctx context.Context, away time.Duration) error {
	n.crash()
	if err := pause.For(ctx, away); err != nil {
		return err
	}
	return n.start()
}

// forget has the kubelet remove a pod's directories under the driver, or all that it
// does not leave behind. Without a kubelet that does not happen.
func (n *node) forget(p *kubelet.Pod, leave bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kubelet == nil {
		return nil
	}
	if leave {
		return n.kubelet.LeaveBehind(p)
	}
	return n.kubelet.Forget(p)
}
