package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/soak/testbed"
)

// arrayDaemon is a daemon that serves volumes of arrays too.
type arrayDaemon struct {
	*daemon
	// arrayNode are the calls of the kubelet for these volumes.
	arrayNode csi.NodeClient
}

// newArrayDaemon prepares a daemon that asks the API server at a URL.
func newArrayDaemon(t testing.TB, api string, flags ...string) *arrayDaemon {
	t.Helper()
	a := &arrayDaemon{daemon: newDaemon(t)}
	a.servesArrays(api)
	a.flags = append(a.flags, flags...)
	return a
}

// servesArrays gives the daemon what it needs for volumes of arrays.
func (a *arrayDaemon) servesArrays(api string) {
	a.t.Helper()
	credentials := credentialsDir(a.t, a.dir)
	a.flags = append(a.flags, "--array-endpoint", "unix://"+a.arraySocket(), "--node-addresses", "127.0.0.1", "--kube-api", api,
		"--kube-credentials", credentials)
	a.arrayNode = nodeClient(a.t, a.arraySocket(), testbed.Eager(), testbed.Waiting())
}

// nodeClient returns the calls of a driver at a socket.
func nodeClient(t testing.TB, path string, options ...grpc.DialOption) csi.NodeClient {
	t.Helper()
	conn, err := testbed.Dial(path, options...)
	must(t, err)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return csi.NewNodeClient(conn)
}

// credentialsDir makes a directory with a token, as a pod has it.
func credentialsDir(t testing.TB, in string) string {
	t.Helper()
	dir := filepath.Join(in, "credentials")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("token"), 0o600))
	return dir
}

// silentServer takes connections and says nothing, like an API server that hangs.
func silentServer(t testing.TB) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func (a *arrayDaemon) arraySocket() string { return filepath.Join(a.dir, "array", "csi.sock") }

// records are the names of the records of staged volumes.
func (a *arrayDaemon) stagedRecords() (names []string) {
	a.t.Helper()
	entries, err := os.ReadDir(filepath.Join(a.dir, "array", "staged"))
	if err != nil && !os.IsNotExist(err) {
		a.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// volume is the kubelet's side of a volume of an array that is attached.
func (a *arrayDaemon) volume(at pools.Attachment, block bool) testbed.Staged {
	return testbed.Staged{Node: a.arrayNode, Kubelet: a.layout().Kubelet, Driver: "array.csi.katbox.io", Pod: testPod, ID: at.Volume,
		Block: block, Attached: at.PublishContext(block)}
}

// wantNothingLeft checks that the machine has nothing of a volume any more.
func (a *arrayDaemon) wantNothingLeft(when string) {
	a.t.Helper()
	if records := a.stagedRecords(); len(records) != 0 {
		a.t.Errorf("%s: there are records of staged volumes: %q", when, records)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(a.t, err)
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, filepath.Join(a.layout().Kubelet, "plugins")+"/") || strings.Contains(line, a.layout().Pods()+"/") {
			a.t.Errorf("%s: mounted: %s", when, line)
		}
	}
}
