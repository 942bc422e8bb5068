package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/apitest"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

const (
	// patience is a guard against hangs.
	patience = 2 * time.Minute
	// asMain makes the test's program the controller.
	asMain = "KATBOX_TEST_CONTROLLER"
)

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// world is an API server with a class, a pool on an array, and a node.
type world struct {
	t     *testing.T
	api   *apitest.Server
	array *fakevpsa.Running
	kube  client.WithWatch
	dir   string
	// env is what the controllers have in their environment.
	env []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	array, err := fakevpsa.Start(fakevpsa.Options{}, fakevpsa.Listen{})
	must(t, err)
	t.Cleanup(func() { array.Close() })
	w := &world{t: t, api: apitest.Start(), array: array, dir: t.TempDir()}
	t.Cleanup(w.api.Close)
	w.kube, err = w.api.Client()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.dir, "kubeconfig"), w.api.Kubeconfig(), 0o600))
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "array"}, Data: map[string][]byte{"token": []byte("token")}},
		&v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"},
			Spec: v1alpha1.PoolClassSpec{Default: true, Allocator: v1alpha1.Weighted, Protocol: v1alpha1.NFS}},
		&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PoolSpec{ClassName: "fast", Overcommit: "0",
			VPSA: v1alpha1.VPSA{Endpoint: array.URL, CredentialsSecretRef: v1alpha1.SecretRef{Name: "array"}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		&v1alpha1.PoolNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Spec: v1alpha1.PoolNodeSpec{Addresses: []string{"10.1.0.1"}, IQN: "iqn.2026-11.io.katbox:test:n1"}},
	} {
		must(t, w.kube.Create(t.Context(), object))
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replica is a controller in a process of its own.
type replica struct {
	t      *testing.T
	cmd    *exec.Cmd
	socket string
	conn   *grpc.ClientConn
	ended  chan struct{}
	err    error

	mu  sync.Mutex
	out bytes.Buffer
	// wrote is closed at the next line.
	wrote chan struct{}
}

func (w *world) start(name string, flags ...string) *replica {
	w.t.Helper()
	r := &replica{t: w.t, socket: filepath.Join(w.dir, name+".sock"), ended: make(chan struct{}), wrote: make(chan struct{})}
	r.cmd = exec.Command(os.Args[0], append([]string{"--namespace=katbox", "--chap-namespace=katbox-chap",
		"--kubeconfig=" + filepath.Join(w.dir, "kubeconfig"), "--endpoint=unix://" + r.socket, "--leader-election-identity=" + name,
		"--probe-interval=1s", "--http-endpoint=127.0.0.1:0"}, flags...)...)
	r.cmd.Env = append(append(os.Environ(), asMain+"=1"), w.env...)
	r.cmd.Stdout, r.cmd.Stderr = r, r
	must(w.t, r.cmd.Start())
	go func() {
		defer close(r.ended)
		r.err = r.cmd.Wait()
	}()
	var err error
	r.conn, err = grpc.NewClient("unix://"+r.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(w.t, err)
	w.t.Cleanup(func() {
		r.conn.Close()
		_ = r.cmd.Process.Kill()
		<-r.ended
		if w.t.Failed() {
			w.t.Logf("the log of %s:\n%s", name, r.log())
		}
	})
	return r
}

// Write takes the output.
func (r *replica) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Write(p)
	close(r.wrote)
	r.wrote = make(chan struct{})
	return len(p), nil
}

func (r *replica) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// says waits until the log has a text.
func (r *replica) says(text string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		r.mu.Lock()
		wrote, there := r.wrote, strings.Contains(r.out.String(), text)
		r.mu.Unlock()
		if there {
			return
		}
		select {
		case <-wrote:
		case <-r.ended:
			if strings.Contains(r.log(), text) {
				return
			}
			r.t.Fatalf("it ended with %v, and did not say %q", r.err, text)
		case <-ctx.Done():
			r.t.Fatalf("it does not say %q", text)
		}
	}
}

// ends waits for the end, and returns the exit code.
func (r *replica) ends() int {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	select {
	case <-r.ended:
		return r.cmd.ProcessState.ExitCode()
	case <-ctx.Done():
		r.t.Fatal("it does not end")
		return -1
	}
}

func (r *replica) hasSocket() bool {
	_, err := os.Lstat(r.socket)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return err == nil
}

// TestEachDriverHasItsSocket: what is on arrays does not exist for the driver of the volumes on nodes.
func TestEachDriverHasItsSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	socket := filepath.Join(w.dir, "local.sock")
	r := w.start("one", "--local-endpoint=unix://"+socket)
	r.create("pvc-1")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "local.csi.katbox.io" {
		t.Errorf("it is %v, %v", info, err)
	}
	local := csi.NewControllerClient(conn)
	if all, err := local.ListVolumes(t.Context(), &csi.ListVolumesRequest{}); err != nil || len(all.GetEntries()) > 0 {
		t.Errorf("it lists %v, %v", all, err)
	}
	if _, err := local.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "pvc-1"}); err != nil || len(w.array.Volumes()) != 1 {
		t.Errorf("it has deleted a volume of the array: %v", err)
	}
	room, err := local.GetCapacity(t.Context(), &csi.GetCapacityRequest{})
	if err != nil || room.GetAvailableCapacity() != 0 {
		t.Errorf("without nodes there is room for %v, %v", room, err)
	}
	must(t, r.cmd.Process.Signal(syscall.SIGTERM))
	if code := r.ends(); code != 0 || r.hasSocket() {
		t.Errorf("exit code %d, socket %t; want 0 and none", code, r.hasSocket())
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket for the volumes on nodes is left")
	}
}

// create asks for a volume until it is there.
func (r *replica) create(name string) (made *csi.Volume) {
	r.t.Helper()
	r.repeat(func(ctx context.Context, c csi.ControllerClient) error {
		answer, err := c.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
			VolumeCapabilities: []*csi.VolumeCapability{{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			}},
		})
		made = answer.GetVolume()
		return err
	})
	return made
}

// repeat makes a call until it succeeds, as a provisioner does: right after its start a controller does not know
// its arrays.
func (r *replica) repeat(call func(context.Context, csi.ControllerClient) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		err := call(ctx, csi.NewControllerClient(r.conn))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			r.t.Fatal(err)
		}
		_ = retry.Pause(ctx, 100*time.Millisecond)
	}
}

// TestVolumeIsMadeOnTheArray: the whole way, from the socket to the array and back.
func TestVolumeIsMadeOnTheArray(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start("one")
	v := r.create("pvc-1")
	if v.GetVolumeId() != "pvc-1" || v.GetCapacityBytes() != 1<<30 {
		t.Errorf("made %v", v)
	}
	again := r.create("pvc-1")
	if again.GetVolumeId() != v.GetVolumeId() || len(w.array.Volumes()) != 1 {
		t.Errorf("made again as %v, and there are %d volumes", again, len(w.array.Volumes()))
	}
	var record v1alpha1.PoolVolume
	must(t, w.kube.Get(t.Context(), client.ObjectKey{Name: "pvc-1"}, &record))
	if record.Status.State != v1alpha1.VolumeReady || record.Spec.PoolName != "a" {
		t.Errorf("the record is %+v", record)
	}
	must(t, r.cmd.Process.Signal(syscall.SIGTERM))
	if code := r.ends(); code != 0 || r.hasSocket() {
		t.Errorf("exit code %d, socket %t; want 0 and none", code, r.hasSocket())
	}
	if len(w.array.Volumes()) != 1 {
		t.Error("the end of the controller has deleted a volume")
	}
	var lease coordinationv1.Lease
	must(t, w.kube.Get(t.Context(), client.ObjectKey{Namespace: "katbox", Name: "katbox-controller"}, &lease))
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the lease is still held by %s", *holder)
	}

	// The next one goes on where this one was.
	next := w.start("two")
	next.repeat(func(ctx context.Context, c csi.ControllerClient) error {
		_, err := c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "pvc-1"}, grpc.WaitForReady(true))
		return err
	})
	if len(w.array.Volumes()) != 0 {
		t.Errorf("%d volumes are left", len(w.array.Volumes()))
	}
}

// wait asks a replica who it is, which it answers at once, and how it is, which it answers when it serves.
func (r *replica) wait() (answered chan error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	r.t.Cleanup(cancel)
	info, err := csi.NewIdentityClient(r.conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.GetName() != "array.csi.katbox.io" {
		r.t.Fatalf("it is %v, %v", info, err)
	}
	answered = make(chan error, 1)
	go func() {
		probe, err := csi.NewIdentityClient(r.conn).Probe(ctx, &csi.ProbeRequest{})
		if err == nil && !probe.GetReady().GetValue() {
			err = errors.New("it is not ready")
		}
		answered <- err
	}()
	return answered
}

func wantNone(t *testing.T, answered chan error) {
	t.Helper()
	select {
	case err := <-answered:
		t.Fatalf("it answers before it serves: %v", err)
	default:
	}
}

// TestOnlyTheLeaderServes: the sidecars of another replica wait, until it takes over from one that was
// killed.
func TestOnlyTheLeaderServes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// However slow the machine is, no lease ends by itself.
	long := []string{"--leader-election-lease-duration=1h", "--leader-election-renew-deadline=30m", "--leader-election-retry-period=100ms"}
	first := w.start("first", long...)
	first.says(`"serving"`)
	second := w.start("second", long...)
	second.says(`"leader"`)
	must(t, <-first.wait())
	waiting := second.wait()
	third := w.start("third", long...)
	third.wait()
	must(t, third.cmd.Process.Signal(syscall.SIGTERM))
	if code := third.ends(); code != 0 || third.hasSocket() {
		t.Errorf("one that never served ends with %d, socket %t", code, third.hasSocket())
	}
	wantNone(t, waiting)
	must(t, first.cmd.Process.Kill())
	first.ends()
	var lease coordinationv1.Lease // its time is over
	must(t, w.kube.Get(t.Context(), client.ObjectKey{Namespace: "katbox", Name: "katbox-controller"}, &lease))
	lease.Spec.HolderIdentity = new(string)
	must(t, w.kube.Update(t.Context(), &lease))
	must(t, <-waiting)
	second.create("pvc-2")
}

// TestALostLeaseEndsTheController: at once, before another one may begin.
func TestALostLeaseEndsTheController(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start("one")
	r.says(`"serving"`)
	w.api.Refuse(func(r *http.Request) error {
		if strings.Contains(r.URL.Path, "leases") {
			return errors.New("away")
		}
		return nil
	})
	if code := r.ends(); code != 1 || !strings.Contains(r.log(), "the lease is lost") {
		t.Errorf("exit code %d", code)
	}
}

// TestStartWaitsForTheAPIServer: and answers no call before it knows all resources.
func TestStartWaitsForTheAPIServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan struct{})
	wasAsked := sync.OnceFunc(func() { close(asked) })
	w.api.Refuse(func(r *http.Request) error {
		if strings.Contains(r.URL.Path, "poolattachments") {
			wasAsked()
			return errors.New("away")
		}
		return nil
	})
	r := w.start("one", "--leader-election=false")
	select {
	case <-asked:
	case <-r.ended:
		t.Fatalf("it ended: %v", r.err)
	}
	answered := r.wait()
	wantNone(t, answered)
	w.api.Refuse(nil)
	must(t, <-answered)
	r.create("pvc-1")
	must(t, r.cmd.Process.Signal(syscall.SIGTERM))
	if code := r.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
