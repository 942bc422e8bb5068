package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/node/kubeapi"
	"github.com/katbox/katbox/internal/testing/apitest"
	"github.com/katbox/katbox/internal/testing/attachtest"
)

// arrayCluster is an array with real data, and an API server that knows what a node logs in with.
type arrayCluster struct {
	*attachtest.Array
	node attachtest.Node
	api  *apitest.Server
}

// attached is a volume that is attached to the node.
type attached struct {
	at    pools.Attachment
	block bool
	on    array.Volume
}

func newArrayCluster(t testing.TB) *arrayCluster {
	t.Helper()
	attachtest.Need(t)
	c := &arrayCluster{Array: attachtest.NewArray(t), node: attachtest.ThisNode(t), api: apitest.Start()}
	t.Cleanup(c.api.Close)
	admin, err := c.api.Client()
	must(t, err)
	must(t, admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "katbox-chap", Name: "chap-array"},
		Data:       map[string][]byte{"node.session.auth.username": []byte(c.User), "node.session.auth.password": []byte(c.Secret)},
	}))
	asking, err := kubeapi.New(kubeapi.Config{Server: c.api.URL(), Credentials: credentialsDir(t, t.TempDir()), CHAPNamespace: "katbox-chap"})
	must(t, err)
	cluster, err := asking.ClusterID(t.Context())
	must(t, err)
	c.node.IQN = pools.IQN(c.node.Name, cluster)
	return c
}

// The kinds of volumes.
const (
	nfsVolume   = "nfs"
	diskVolume  = "iscsi"
	blockVolume = "block"
)

// attach makes a volume of 1 GiB and attaches it to the node.
func (c *arrayCluster) attach(t testing.TB, kind, name string) attached {
	t.Helper()
	on := c.Create(t, name, 1, kind != nfsVolume)
	v := attached{at: c.Attach(t, on, c.node, false), block: kind == blockVolume, on: on}
	if kind == diskVolume {
		v.at.FSType = pools.DefaultFSType
	}
	return v
}
