package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// stepLimit is how long each step of a pod, of the daemon or of a command may
// take. It is for what hangs, not for what is slow.
const stepLimit = 3 * time.Minute

// jobs are the scripts that the pods run, in their volume.
//
//go:embed jobs
var jobs embed.FS

// pod is a pod with one volume and one container.
type pod struct {
	namespace, name string
	// job is the script, bytes the size of the large file that it writes.
	job   string
	bytes int64

	kubelet           *kubelet.Pod
	mounted, gone     func()
	isMounted, isGone chan struct{}
	// container is nil until it runs; log is what it prints.
	container *testbed.Process
	log       *containerLog
	// retained is when its volume was retained, at the earliest.
	retained time.Time
}

// podUID is the same in each run, so that all see the same names. volumeID is what a kubelet calls a volume of the pod.
func podUID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func volumeID(pod, name string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(podUID(pod)+name)))
}

// launch creates a pod, waits until its volume is mounted, and starts its job
// there.
func (n *node) launch(ctx context.Context, namespace, name, job string, bytes int64) (*pod, error) {
	p := &pod{
		namespace: namespace, name: name, job: job, bytes: bytes,
		isMounted: make(chan struct{}), isGone: make(chan struct{}),
		kubelet: kubelet.NewPod(n.layout.Kubelet, n.layout.Work, workload.Pod{
			UID: podUID(name), Namespace: namespace, Name: name,
			Volumes: []workload.Volume{{Name: "scratch", ID: volumeID(name, "scratch")}},
		}),
	}
	p.mounted = sync.OnceFunc(func() { close(p.isMounted) })
	p.gone = sync.OnceFunc(func() { close(p.isGone) })
	n.mu.Lock()
	n.pods[p.kubelet] = p
	n.mu.Unlock()
	n.api.Create(p.kubelet)
	if err := await(ctx, p.isMounted, "the volume of pod "+p.String()+" is not mounted"); err != nil {
		return nil, err
	}
	return p, p.begin(n.logs())
}

func (p *pod) String() string { return p.namespace + "/" + p.name }

// target is where the volume is mounted for the pod, data where its files are on
// the node.
func (p *pod) target() string { return p.kubelet.Volumes[0].Story.Target }
func (p *pod) data() string   { return p.kubelet.Volumes[0].Story.Data }

// begin starts the container: a shell in the volume. It prints into the directory of the logs of pods.
func (p *pod) begin(logs string) error {
	script, err := jobs.ReadFile("jobs/" + p.job)
	if err != nil {
		return fmt.Errorf("the job of pod %s: %w", p, err)
	}
	cmd := exec.Command("/bin/sh", "-c", string(script))
	cmd.Dir = p.target()
	cmd.Env = append(os.Environ(), fmt.Sprintf("BYTES=%d", p.bytes))
	p.log = &containerLog{began: time.Now(), dir: filepath.Join(logs, p.namespace+"_"+p.name+"_"+podUID(p.name))}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if p.container, err = testbed.Start(cmd); err != nil {
		return fmt.Errorf("the job of pod %s: %w", p, err)
	}
	return nil
}

// end waits until the job ends by itself with the code, and deletes the pod, and with it what the kubelet has of its log. Its
// volume is retained from then on.
func (n *node) end(ctx context.Context, p *pod, code int) error {
	if err := await(ctx, p.container.Ended(), "the job of pod "+p.String()+" does not end"); err != nil {
		return err
	}
	if got := p.container.State().ExitCode(); got != code {
		return fmt.Errorf("the job of pod %s has to end with code %d: %w", p, code, p.container.Exit())
	}
	exit := kubelet.Exit{Container: containerName, Reason: "Completed", Code: code, Began: p.log.began, Ended: time.Now()}
	if code != 0 {
		exit.Reason = "Error"
	}
	n.podsAPI.Exited(p.kubelet, exit)
	p.retained = time.Now()
	n.api.Finish(p.kubelet)
	if err := await(ctx, p.isGone, "the kubelet cannot unmount the volume of pod "+p.String()); err != nil {
		return err
	}
	return os.RemoveAll(p.log.dir)
}

// kill ends the container and all that it has started.
func (p *pod) kill() {
	if p.container == nil {
		return
	}
	// It fails only if nothing is left.
	_ = unix.Kill(-p.container.PID(), unix.SIGKILL)
	<-p.container.Ended()
}

// await waits until something happened.
func await(ctx context.Context, happened <-chan struct{}, otherwise string) error {
	limited, end := context.WithTimeoutCause(ctx, stepLimit, errors.New(otherwise+" after "+stepLimit.String()))
	defer end()
	select {
	case <-happened:
		return nil
	case <-limited.Done():
		return context.Cause(limited)
	}
}

// poll asks every few milliseconds until the answer is yes.
func poll(ctx context.Context, otherwise string, done func() (bool, error)) error {
	limited, end := context.WithTimeoutCause(ctx, stepLimit, errors.New(otherwise+" after "+stepLimit.String()))
	defer end()
	return pause.Until(limited, pollInterval, func() (bool, error) {
		ok, err := done()
		return ok || err != nil, err
	})
}
