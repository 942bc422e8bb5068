package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	actorslocal "github.com/katbox/katbox/actors/local"
	"github.com/katbox/katbox/internal/model/local"
)

// localFlags start a daemon with pools on the node's disks.
const localFlags = "--nodeid n --local-endpoint unix:///local/csi.sock --local-pool fast=/mnt/a"

func TestFlagsOfLocalPools(t *testing.T) {
	o, err := parse(strings.Fields(localFlags+" --local-pool bulk=/mnt/b/,on-root-disk,backend=image --local-pool fast=/mnt/c,backend=auto "+
		"--registration-dir /reg --local-kubelet-registration-path /kubelet/csi.sock"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.local.places()
	want := []actorslocal.Place{
		{Class: "fast", Path: "/mnt/a", Backend: local.Auto}, {Class: "bulk", Path: "/mnt/b", Backend: local.Image, OnRootDisk: true},
		{Class: "fast", Path: "/mnt/c", Backend: local.Auto},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("places %+v, %v, want %+v", got, err, want)
	}
	if r := o.local.registrarConfig(o); r.Name != "local.csi.katbox.io" || r.Endpoint != "/kubelet/csi.sock" || r.Dir != "/reg" {
		t.Errorf("it registers as %+v", r)
	}
	if o.local.threads(400) != 100 || (localOptions{}).threads(400) != 0 {
		t.Error("it has other threads")
	}
}

func TestBadFlagsOfLocalPoolsAreRefusedInOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--nodeid n --local-endpoint unix:///local/csi.sock":     "--local-endpoint is of no use without --local-pool",
		"--nodeid n --local-max-volumes 5":                       "--local-max-volumes is of no use without --local-pool",
		"--nodeid n --local-kubelet-registration-path /x":        "is of no use without --local-pool",
		"--nodeid n --local-pool a=/mnt":                         "--local-pool needs --local-endpoint",
		"--nodeid n --controller c:1":                            "--controller is of no use without --local-pool",
		localFlags + " --controller c":                           `--controller: "c" is not HOST:PORT`,
		localFlags + " --controller c:1 --controller-ca ca.crt":  `--controller-ca "ca.crt" is not an absolute path`,
		localFlags + " --controller c:1 --controller-token t":    `--controller-token "t" is not an absolute path`,
		localFlags + " --local-pool x":                           `--local-pool: "x" is not CLASS=PATH[,backend=NAME][,on-root-disk]`,
		localFlags + " --local-pool A=/mnt/b":                    `the class "A", which is no name of a PoolClass`,
		localFlags + " --local-pool b=mnt":                       `the path "mnt", which is not absolute`,
		localFlags + " --local-pool b=/mnt/../x":                 `contains ".."`,
		localFlags + " --local-pool b=/":                         "the path /, which cannot be a pool",
		localFlags + " --local-pool b=/mnt/b,backend=lvm":        `the option "backend=lvm"`,
		localFlags + " --local-pool b=/mnt/b,on-root-disk,":      `the option ""`,
		localFlags + " --local-pool b=/mnt/b,image":              `the option "image"`,
		localFlags + " --local-pool b=/mnt/a/":                   "is the directory of another pool",
		localFlags + " --local-pool b=/mnt/a/b":                  "is the directory of another pool",
		localFlags + " --local-pool b=/csi-data-dir/x":           "--local-pool /csi-data-dir/x and --workdir /csi-data-dir contain one another",
		localFlags + " --local-pool b=/var/lib":                  "--local-pool /var/lib and the pods directory of --kubelet-dir",
		localFlags + " --local-endpoint csi.sock":                `--local-endpoint: endpoint "csi.sock" is not a Unix socket`,
		localFlags + " --local-endpoint unix:///csi/csi.sock":    "are the same socket",
		localFlags + " --local-drivername katbox.csi.paypal.com": "the kubelet needs two names",
		localFlags + " --local-drivername -":                     "--local-drivername: driver name",
		localFlags + " --local-max-volumes -1":                   "--local-max-volumes -1 is negative",
		localFlags + " --host-root host":                         `--host-root "host" is not an absolute path`,
		localFlags + " --registration-dir /r --local-kubelet-registration-path x": `--local-kubelet-registration-path: CSI socket for the ` +
			`kubelet "x" is not an absolute path`,
		arrayFlags + " --local-pool a=/m --local-endpoint unix:///array/csi.sock":                                  "are the same socket",
		arrayFlags + " --local-pool a=/m --local-endpoint unix:///l/c.sock --local-drivername array.csi.katbox.io": "needs two names",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("katbox %s: %v, want one line with %q", args, err, want)
		}
	}
}
