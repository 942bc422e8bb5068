package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/daemon"
)

// startLimit is how long a program may take until it is ready: the machine is a slow one.
const startLimit = 3 * time.Minute

// programs are those of Katbox.
type programs struct {
	daemon, controller *daemon.Binary
	// nodeSocket is where the kubelet finds the driver for volumes of arrays, controllerSocket where the
	// sidecars find the controller; staged has the daemon's records.
	nodeSocket, controllerSocket, staged string
}

func newPrograms(o options, kubeletDir string, kube kubernetes) (*programs, error) {
	at := func(name string) string { return filepath.Join(o.dir, name) }
	p := &programs{nodeSocket: at("plugin/csi.sock"), controllerSocket: at("controller.sock"), staged: at("plugin/staged")}
	err := errors.Join(
		os.MkdirAll(at("plugin"), 0o755), os.MkdirAll(at("credentials"), 0o700),
		os.WriteFile(at("credentials/token"), []byte("token"), 0o600),
		os.WriteFile(at("kubeconfig"), kube.Kubeconfig(), 0o600),
	)
	scratch := at("scratch.sock")
	p.daemon = daemon.New(daemon.Config{
		Binary: o.daemon, Log: at("daemon.log"), Socket: scratch, StartLimit: startLimit,
		Args: []string{
			"--nodeid", nodeName, "--endpoint", "unix://" + scratch, "--workdir", at("work"), "--kubelet-dir", kubeletDir,
			"--headroom", "0", "--kubelet-line", "none", "--array-endpoint", "unix://" + p.nodeSocket,
			"--node-addresses", o.nodeAddress, "--kube-api", kube.URL(), "--kube-credentials", at("credentials"),
		},
	})
	p.controller = daemon.New(daemon.Config{
		Binary: o.controller, Log: at("controller.log"), Socket: p.controllerSocket, StartLimit: startLimit,
		Args: []string{
			"--namespace=katbox", "--chap-namespace=katbox-chap", "--kubeconfig=" + at("kubeconfig"),
			"--endpoint=unix://" + p.controllerSocket, "--leader-election-identity=soak",
			"--leader-election-lease-duration=62s", "--leader-election-renew-deadline=60s",
			"--probe-interval=5s", "--sync-interval=20s", "--log-format=console",
		},
	})
	return p, err
}

// start starts both, side by side.
func (p *programs) start(ctx context.Context) error {
	var ofDaemon, ofController error
	var both sync.WaitGroup
	both.Go(func() { ofDaemon = p.daemon.Start(ctx) })
	both.Go(func() { ofController = p.controller.Start(ctx) })
	both.Wait()
	if ofController != nil {
		ofController = fmt.Errorf("the controller: %w", ofController)
	}
	return errors.Join(ofDaemon, ofController)
}

func (p *programs) kill() {
	p.daemon.Kill()
	p.controller.Kill()
}
