package main

import (
	"io"
	"net/netip"
	"strings"
	"testing"
)

// arrayFlags start a daemon with volumes of arrays outside of a cluster.
const arrayFlags = "--nodeid n --array-endpoint unix:///array/csi.sock --node-addresses 10.0.0.4,fd00::4 --kube-api https://10.96.0.1:443"

func TestFlagsOfArrays(t *testing.T) {
	o, err := parse(strings.Fields(arrayFlags+" --storage-network 10.9.1.1/16 --registration-dir /reg"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	network, err := o.arrays.network()
	if want := netip.MustParsePrefix("10.9.0.0/16"); err != nil || network != want {
		t.Errorf("storage network %s, %v, want %s", network, err, want)
	}
	addresses, err := o.arrays.addresses()
	if err != nil || len(addresses) != 2 || addresses[0] != netip.MustParseAddr("10.0.0.4") {
		t.Errorf("addresses %v, %v", addresses, err)
	}
	if got := o.arrays.registrarConfig(o); got.Name != "array.csi.katbox.io" || got.Endpoint != "/array/csi.sock" || got.Dir != "/reg" {
		t.Errorf("it registers as %+v", got)
	}
	if o.arrays.chapNamespace != "katbox-chap" || o.arrays.kubeCredentials != "/var/run/secrets/kubernetes.io/serviceaccount" {
		t.Errorf("defaults: %+v", o.arrays)
	}
}

// TestFlagsOfArraysInAPod: Kubernetes says where the API server is.
func TestFlagsOfArraysInAPod(t *testing.T) {
	args := strings.Fields("--nodeid n --array-endpoint unix:///array/csi.sock --node-addresses 10.0.0.4")
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if _, err := parse(args, io.Discard); err != nil {
		t.Error(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), "--kube-api") {
		t.Errorf("%v, want an error about --kube-api", err)
	}
}

func TestBadFlagsOfArraysAreRefusedInOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--nodeid n --storage-network 10.0.0.0/8":                                "--storage-network is of no use without --array-endpoint",
		"--nodeid n --array-max-volumes 5":                                       "--array-max-volumes is of no use without --array-endpoint",
		"--nodeid n --array-kubelet-registration-path /x":                        "is of no use without --array-endpoint",
		"--nodeid n --array-endpoint unix:///array/csi.sock --kube-api http://a": "needs --node-addresses or --storage-network",
		arrayFlags + " --array-endpoint csi.sock":                                `--array-endpoint: endpoint "csi.sock" is not a Unix socket`,
		arrayFlags + " --array-endpoint unix:///csi/../csi/csi.sock":             "are the same socket",
		arrayFlags + " --array-drivername katbox.csi.paypal.com":                 "the kubelet needs two names",
		arrayFlags + " --array-drivername -":                                     "--array-drivername: driver name",
		arrayFlags + " --array-max-volumes -1":                                   "--array-max-volumes -1 is negative",
		arrayFlags + " --storage-network 10.0.0.0":                               "--storage-network: \"10.0.0.0\" is not a CIDR",
		arrayFlags + " --node-addresses 10.0.0.4,":                               "--node-addresses: \"\" is not an IP address",
		arrayFlags + " --host-root host":                                         `--host-root "host" is not an absolute path`,
		arrayFlags + " --kube-credentials x":                                     `--kube-credentials "x" is not an absolute path`,
		arrayFlags + " --kube-api 10.96.0.1:443":                                 "--kube-api: ",
		arrayFlags + " --chap-namespace Chap":                                    "no name of a namespace",
		arrayFlags + " --registration-dir reg":                                   "--registration-dir",
		arrayFlags + " --registration-dir /reg --array-kubelet-registration-path x": `--array-kubelet-registration-path: CSI socket for the ` +
			`kubelet "x" is not an absolute path`,
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("katbox %s: %v, want one line with %q", args, err, want)
		}
	}
}

func TestOnNode(t *testing.T) {
	for _, tt := range []struct {
		flags, path string
		want        bool
	}{
		{"--host-root /host", "/var/lib/kubelet/pods/x", true},
		{"--host-root /host/", "/host/var/lib/kubelet/pods/x", false},
		{"--host-root /host", "/hosts", true},
		{"--host-root /", "/var/lib/kubelet", true},
		{"", "/host/var/lib/kubelet", true},
	} {
		o, err := parse(strings.Fields(arrayFlags+" "+tt.flags), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.arrays.onNode(tt.path); got != tt.want {
			t.Errorf("%s: %s is on the node: %t, want %t", tt.flags, tt.path, got, tt.want)
		}
	}
}
