package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools"
	"github.com/katbox/katbox/internal/controller/array"
	controller "github.com/katbox/katbox/internal/controller/csi"
	"github.com/katbox/katbox/internal/controller/poolmetrics"
	"github.com/katbox/katbox/internal/controller/vpsa"
	"github.com/katbox/katbox/internal/controller/watch"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/local"
	words "github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/apitest"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
	"github.com/katbox/katbox/internal/testing/fakepools"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

const (
	// patience is a guard against hangs.
	patience = 2 * time.Minute
	nodeName = "n1"
)

// node stands in for the node service, which csi-sanity asks for the node's ID.
type node struct {
	csi.UnimplementedNodeServer
	// segments are the node's topology.
	segments map[string]string
}

func (n node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	info := &csi.NodeGetInfoResponse{NodeId: nodeName}
	if len(n.segments) > 0 {
		info.AccessibleTopology = &csi.Topology{Segments: n.segments}
	}
	return info, nil
}

func (node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodeUnpublishVolume and NodeUnstageVolume have nothing to do: csi-sanity calls them to clean up.
func (node) NodeUnpublishVolume(context.Context, *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (node) NodeUnstageVolume(context.Context, *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// start starts the controller with a node service that only stands in, and returns a connection to it.
func start(t *testing.T) *grpc.ClientConn {
	t.Helper()
	remote, err := fakevpsa.New(fakevpsa.Options{})
	must(t, err)
	_, kube := startAPI(t, remote.Settings().Token)
	must(t, kube.Create(t.Context(), &v1alpha1.PoolNode{ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Spec: v1alpha1.PoolNodeSpec{Addresses: []string{"10.1.0.1"}, IQN: "iqn.2026-11.io.katbox:test:n1"}}))
	return startController(t, kube, remote, node{})
}

// disk is the UUID of the pool on the node.
const disk = "11111111-1111-4111-8111-111111111111"

// startLocal starts the controller with a node that has a pool in memory, and returns a connection to the driver of
// such volumes.
func startLocal(t *testing.T) *grpc.ClientConn {
	t.Helper()
	on := &fakepools.Node{}
	on.Add(fakepools.NewDisk(local.Pool{
		UUID: disk, Class: localClass, Backend: local.Image, HardLimit: true, Block: true, Copies: true, Total: 1 << 43,
	}))
	nodes := node{segments: map[string]string{words.TopologyKey(disk): words.TopologyValue}}
	return startLocalWith(t, on, disk, nodes, func() string {
		if v, s := on.On(disk); len(v)+len(s) > 0 {
			return fmt.Sprintf("left on the node: %d volumes, %d snapshots", len(v), len(s))
		}
		return ""
	})
}

// localClass is the class of pools on nodes.
const localClass = "nvme"

// startLocalWith starts the controller with a node that has a pool, and serves nodes beside it; nil for none. left says
// what is left at the end.
func startLocalWith(t *testing.T, on local.Pools, pool string, nodes csi.NodeServer, left func() string) *grpc.ClientConn {
	t.Helper()
	api := apitest.Start()
	t.Cleanup(api.Close)
	kube, err := api.Client()
	must(t, err)
	there, err := on.Pools(t.Context())
	must(t, err)
	enforcement := v1alpha1.Strict
	if len(there) > 0 && !there[0].HardLimit {
		enforcement = v1alpha1.BestEffort // a class that such a pool can be in
	}
	for _, object := range []client.Object{
		&v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: localClass},
			Spec: v1alpha1.PoolClassSpec{Default: true, Allocator: v1alpha1.Weighted, Protocol: v1alpha1.NFS, Enforcement: enforcement}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}},
	} {
		must(t, kube.Create(t.Context(), object))
	}
	conn := startStack(t, kube, stack{
		kind: words.KindLocal, nodes: nodes, left: left,
		connect: func(pools.Access) (array.Array, error) { return nil, errors.New("there is no array") },
		tell: func(actors *pools.Controller) {
			all, err := on.Pools(t.Context())
			must(t, err)
			actors.NodePools(nodeName, "sanity", on, all)
		},
	})
	ready(t, kube, words.LocalPoolName(localClass, pool))
	return conn
}

// startAPI starts an API server with a node and one pool.
func startAPI(t *testing.T, token string) (*apitest.Server, client.WithWatch) {
	t.Helper()
	api := apitest.Start()
	t.Cleanup(api.Close)
	kube, err := api.Client()
	must(t, err)
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "array"}, Data: map[string][]byte{"token": []byte(token)}},
		&v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"},
			Spec: v1alpha1.PoolClassSpec{Default: true, Allocator: v1alpha1.Weighted, Protocol: v1alpha1.NFS}},
		&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PoolSpec{ClassName: "fast", Overcommit: "0",
			VPSA: v1alpha1.VPSA{Endpoint: "http://array", CredentialsSecretRef: v1alpha1.SecretRef{Name: "array"}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}},
	} {
		must(t, kube.Create(t.Context(), object))
	}
	return api, kube
}

// startController starts the whole controller, as its main program does, and returns a connection to
// it. What is left on the array at the end is an error. nodes is served beside it; nil for none.
func startController(t *testing.T, kube client.WithWatch, remote *fakevpsa.Array, nodes csi.NodeServer) *grpc.ClientConn {
	t.Helper()
	log, counted := testr.New(t), poolmetrics.New("sanity", "")
	conn := startStack(t, kube, stack{
		kind: words.KindArray, nodes: nodes,
		connect: func(a pools.Access) (array.Array, error) {
			return vpsa.New(vpsa.Config{Endpoint: a.Endpoint, Token: vpsa.Token(a.Token), PoolID: a.PoolID, Log: log, Metrics: counted,
				Transport: remote.Transport()})
		},
		tell: func(*pools.Controller) {},
		left: func() string {
			if v, s, n := remote.Volumes(), remote.Snapshots(), remote.Servers(); len(v)+len(s)+len(n) > 0 {
				return fmt.Sprintf("left on the array: %d volumes, %d snapshots, %d servers", len(v), len(s), len(n))
			}
			return ""
		},
	})
	ready(t, kube, "a")
	return conn
}

// stack is what a controller is started with.
type stack struct {
	kind    words.Kind
	connect func(pools.Access) (array.Array, error)
	nodes   csi.NodeServer
	// tell tells the controller of nodes; left says what is left at the end.
	tell func(*pools.Controller)
	left func() string
}

// startStack starts the whole controller, and returns a connection to the driver of a kind.
func startStack(t *testing.T, kube client.WithWatch, with stack) *grpc.ClientConn {
	t.Helper()
	log, counted := testr.New(t), poolmetrics.New("sanity", "")
	actors, err := pools.Start(pools.Config{
		Resources: pools.Resources{Client: kube, Events: &record.FakeRecorder{}},
		Connect:   with.connect,
		Namespace: "katbox", CHAPNamespace: "katbox-chap", Driver: "array.csi.katbox.io", LocalDriver: "local.csi.katbox.io",
		Cluster:       "sanity",
		ProbeInterval: time.Second, SyncInterval: time.Minute, Metrics: counted, Log: log,
	})
	must(t, err)
	watching, end := context.WithCancel(context.Background())
	watches := watch.Start(watching, watch.Config{API: kube, Sink: actors, Up: counted.Watched, Log: log, Kinds: []watch.Kind{
		{Name: poolmessages.PoolClassKind, List: func() client.ObjectList { return &v1alpha1.PoolClassList{} }},
		{Name: poolmessages.PoolKind, List: func() client.ObjectList { return &v1alpha1.PoolList{} }},
		{Name: poolmessages.PoolVolumeKind, List: func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }},
		{Name: poolmessages.PoolSnapshotKind, List: func() client.ObjectList { return &v1alpha1.PoolSnapshotList{} }},
		{Name: poolmessages.PoolAttachmentKind, List: func() client.ObjectList { return &v1alpha1.PoolAttachmentList{} }},
		{Name: poolmessages.PoolNodeKind, List: func() client.ObjectList { return &v1alpha1.PoolNodeList{} }},
		{Name: poolmessages.NodeKind, List: func() client.ObjectList {
			nodes := &metav1.PartialObjectMetadataList{}
			nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
			return nodes
		}},
	}})
	<-watches.Listed()
	actors.Listed()
	with.tell(actors)

	driver, err := controller.New(controller.Config{Kind: with.kind, Name: string(with.kind) + ".csi.katbox.io", Version: "sanity",
		Pools: actors.OfKind(with.kind), Log: log,
		Count: func(method string) edge.Calls { return counted.Method(method) }})
	must(t, err)
	server := controller.NewServer(driver)
	if with.nodes != nil {
		csi.RegisterNodeServer(server, with.nodes)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		end()
		watches.Wait()
		must(t, actors.Stop(ctx))
		if left := with.left(); left != "" {
			t.Error(left)
		}
	})
	return serve(t, server)
}

// serve serves a driver until the test has ended, and returns a connection to it.
func serve(t *testing.T, server *edge.Server) *grpc.ClientConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "csi.sock")
	listener, err := net.Listen("unix", path)
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(t, conn.Close())
		must(t, server.Stop(ctx))
		must(t, <-served)
	})
	return conn
}

// ready waits until the pool takes volumes.
func ready(t *testing.T, kube client.Client, pool string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		var p v1alpha1.Pool
		must(t, client.IgnoreNotFound(kube.Get(ctx, client.ObjectKey{Name: pool}, &p)))
		if p.Status.State == v1alpha1.PoolReady {
			return
		}
		must(t, ctx.Err())
		time.Sleep(20 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
