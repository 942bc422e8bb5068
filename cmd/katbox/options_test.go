package main

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/program"
)

func TestDefaultsAreTheOldDrivers(t *testing.T) {
	got, err := parse([]string{"--nodeid", "n"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		endpoint: "unix:///csi/csi.sock", adminSocket: "auto", gatewayCA: "/var/run/katbox-gateway/ca.crt",
		gatewayToken: "/var/run/katbox-gateway/token", outcomes: "auto",
		readRate: "0", driverName: "katbox.csi.paypal.com", nodeID: "n", workdir: "/csi-data-dir",
		kubeletDir: "/var/lib/kubelet", afterLifespan: 12 * time.Hour, sizeLimit: "0", inodeLimit: "0", maxSizeLimit: "0", maxInodeLimit: "0",
		releaseGrace: 10 * time.Minute,
		headroom:     0.1, kubeletLine: "auto", pressureOrder: "oldest", pruneInterval: 5 * time.Second,
		quota: "auto", projectIDs: "1258291200+16777216", eraseParallel: 2, tombstones: 10_000, recordSync: time.Second,
		syncPatience: 30 * time.Second, orphanGrace: 10 * time.Minute,
		maxPin: 168 * time.Hour, maxPinned: "10%", logLevel: "info", logFormat: "json",
		logs:    logsOptions{keep: "off", limit: "50Mi", dir: "/var/log/pods"},
		archive: archiveOptions{what: "Never", rate: "50Mi", max: "10Gi"},
		arrays: arrayOptions{
			driverName: "array.csi.katbox.io", chapNamespace: "katbox-chap", kubeCredentials: "/var/run/secrets/kubernetes.io/serviceaccount",
		},
		local: localOptions{
			driverName: "local.csi.katbox.io",
			controller: controllerOptions{ca: "/var/run/katbox-controller/ca.crt", token: "/var/run/katbox-controller/token"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestArchivedFlags: those of the archived Katbox's own manifests start the daemon.
func TestArchivedFlags(t *testing.T) {
	for _, test := range []struct{ args, level string }{
		{"--drivername=katbox.csi.paypal.com --v=5 --endpoint=unix:///csi/csi.sock --nodeid=n --afterlifespan=3h --headroom=.1", "debug"},
		{"--drivername katbox.csi.paypal.com --v=1 --nodeid n --workdir /csi-data-dir --maxvolumespernode 5 --pruneinterval 1s", "info"},
		{"--v 4 --nodeid n", "debug"},
		{"--v 3 --nodeid n --log-level warn", "warn"},
	} {
		o, err := parse(strings.Fields(test.args), io.Discard)
		if err != nil || o.level() != test.level {
			t.Errorf("katbox %s: level %q (%v), want %q", test.args, o.level(), err, test.level)
		}
	}
}

// TestLongestEndpoint: a CSI socket that fits is enough, whether the admin socket fits beside it or
// not.
func TestLongestEndpoint(t *testing.T) {
	const longest = 107
	endpoint := "/" + strings.Repeat("x", longest-len("//a.sock")) + "/a.sock"
	args := []string{"--nodeid", "n", "--endpoint", "unix://" + endpoint}
	if _, err := parse(args, io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := parse(append(args, "--admin-socket", endpoint+"2"), io.Discard); err == nil {
		t.Error("the path of an admin socket is too long, and not refused")
	}
}

func TestBadFlagsAreRefusedInOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"":                                                                      "--nodeid is missing",
		"--nodeid n --headroom 1.5":                                             "headroom 1.5 is outside of 0..1",
		"--nodeid n --headroom -0.1":                                            "outside of 0..1",
		"--nodeid n --headroom NaN":                                             "headroom",
		"--nodeid n --headroom lots":                                            "headroom",
		"--nodeid n --kubelet-line=":                                            `--kubelet-line: "" is not auto, none or BYTES[,INODES]`,
		"--nodeid n --quota on":                                                 `--quota: "on" is not auto, off or required`,
		"--nodeid n --project-ids 0+5":                                          "--project-ids: project 0 is that of all other files",
		"--nodeid n --project-ids 5":                                            `--project-ids: "5" is not FIRST+SIZE`,
		"--nodeid n --kubelet-line=-1%":                                         `bytes "-1%": is outside of 0% to 100%`,
		"--nodeid n --kubelet-line 15%,lots":                                    `inodes "lots": is neither`,
		"--nodeid n --http-endpoint 8080":                                       "--http-endpoint",
		"--nodeid n --http-endpoint :http":                                      "--http-endpoint",
		"--nodeid n --http-endpoint host:65536":                                 "--http-endpoint",
		"--nodeid n --endpoint tcp://127.0.0.1:1":                               "not a Unix socket",
		"--nodeid n --admin-socket=":                                            "not an absolute path",
		"--nodeid n --admin-socket admin.sock":                                  "--admin-socket",
		"--nodeid n --admin-socket /csi/csi.sock":                               "is that of --endpoint",
		"--nodeid n --admin-socket /" + strings.Repeat("x", 107):                "a Unix socket at most 107",
		"--nodeid n --outcomes gateway":                                         "--outcomes: gateway needs --gateway",
		"--nodeid n --outcomes no":                                              `--outcomes: "no" is none of auto, kubelet, gateway, off`,
		"--nodeid n --gateway gateway.katbox.svc":                               `--gateway: "gateway.katbox.svc" is not HOST:PORT`,
		"--nodeid n --gateway a:1,":                                             `--gateway: "" is not HOST:PORT`,
		"--nodeid n --gateway a:1 --gateway-ca ca.crt":                          `--gateway-ca "ca.crt" is not an absolute path`,
		"--nodeid n --gateway a:1 --gateway-token token":                        `--gateway-token "token" is not an absolute path`,
		"--nodeid n --read-rate fast":                                           `--read-rate: "fast" is not a quantity`,
		"--nodeid n --read-rate 1Ki":                                            "neither 0 nor at least 64Ki",
		"--nodeid n --read-rate=-1Mi":                                           "neither 0 nor at least 64Ki",
		"--nodeid n --workdir data":                                             "--workdir",
		"--nodeid n --workdir /":                                                "--workdir",
		"--nodeid n --workdir /var/lib/kubelet/pods/x":                          "contain one another",
		"--nodeid n --workdir /var/lib":                                         "contain one another",
		"--nodeid n --workdir /link/../data":                                    "--workdir",
		"--nodeid n --workdir-on-node data":                                     "--workdir-on-node",
		"--nodeid n --kubelet-dir kubelet":                                      "--kubelet-dir",
		"--nodeid n --afterlifespan -1s":                                        "--afterlifespan",
		"--nodeid n --afterlifespan 12":                                         "afterlifespan",
		"--nodeid n --afterlifespan 12parsecs":                                  "write it as",
		"--nodeid n --afterlifespan -1d":                                        "--afterlifespan -1d is negative",
		"--nodeid n --lifespan-succeeded -1h":                                   "--lifespan-succeeded -1h is negative",
		"--nodeid n --lifespan-succeeded 13h":                                   "--lifespan-succeeded 13h is longer than --afterlifespan 12h",
		"--nodeid n --max-lifespan 1h":                                          "--max-lifespan 1h is shorter than --afterlifespan 12h",
		"--nodeid n --max-lifespan -1h":                                         "--max-lifespan -1h is shorter",
		"--nodeid n --size-limit lots":                                          `--size-limit: "lots" is not a quantity`,
		"--nodeid n --inode-limit=-1":                                           `--inode-limit: "-1" is not a quantity`,
		"--nodeid n --max-size-limit 1e30":                                      `--max-size-limit: "1e30" is not a quantity`,
		"--nodeid n --max-inode-limit=":                                         `--max-inode-limit: "" is not a quantity`,
		"--nodeid n --size-limit 2Gi --max-size-limit 1Gi":                      "the limit of bytes, 2Gi, is more than the most, 1Gi",
		"--nodeid n --release-grace 0s":                                         "--release-grace 0s must be longer than 0",
		"--nodeid n --policy-file policy.yaml":                                  `--policy-file "policy.yaml" is not an absolute path`,
		"--nodeid n --pruneinterval 0s":                                         "--pruneinterval",
		"--nodeid n --pruneinterval 1ns":                                        "--pruneinterval 1ns is shorter than 100ms",
		"--nodeid n --pruneinterval -1d":                                        "--pruneinterval -1d is shorter than 100ms",
		"--nodeid n --endpoint unix:relative.sock":                              "not an absolute path",
		"--nodeid n --endpoint unix://csi/csi.sock":                             "not an absolute path",
		"--nodeid n --erase-parallel 0":                                         "--erase-parallel",
		"--nodeid n --tombstones=-1":                                            "--tombstones -1 is outside of 0..1000000",
		"--nodeid n --tombstones 1000001":                                       "--tombstones",
		"--nodeid n --erase-parallel 17":                                        "--erase-parallel",
		"--nodeid n --orphan-grace 0s":                                          "--orphan-grace",
		"--nodeid n --min-lifespan -1h":                                         "--min-lifespan -1h is negative",
		"--nodeid n --pressure-order newest":                                    `--pressure-order "newest" is neither oldest nor fair`,
		"--nodeid n --max-per-owner 5":                                          `--max-per-owner: "5" is not FIRST,LAST`,
		"--nodeid n --max-pin -1d":                                              "--max-pin -1d is negative",
		"--nodeid n --max-pinned 100%":                                          `--max-pinned: "100%" is outside of 0% to 100%`,
		"--nodeid n --max-pinned much":                                          `"much" is neither a percentage`,
		"--nodeid n --maxvolumespernode -1":                                     "--maxvolumespernode",
		"--nodeid n --otlp-endpoint collector:4317":                             "--otlp-endpoint",
		"--nodeid n --otlp-endpoint http://":                                    "--otlp-endpoint",
		"--nodeid n --otlp-endpoint http://%":                                   "--otlp-endpoint",
		"--nodeid n --registration-dir plugins":                                 "--registration-dir",
		"--nodeid n --registration-dir /" + strings.Repeat("x", 78):             "a Unix socket at most 107",
		"--nodeid n --registration-dir /r --endpoint unix:csi.sock":             "not an absolute path",
		"--nodeid n --registration-dir /r --kubelet-registration-path csi.sock": "--kubelet-registration-path",
		"--nodeid n --drivername _":                                             "--drivername",
		"--nodeid n extra":                                                      "unexpected argument",
		"--nodeid n --unknown":                                                  "unknown flag",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("katbox %s: %v, want an error with %q", args, err, want)
			continue
		}
		var stderr strings.Builder
		if code := program.ExitCode(programName, err, &stderr); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("katbox %s: exit code %d, stderr %q, want 1 and one line", args, code, stderr.String())
		}
	}
}

// TestDurations: all flags take the units that Prometheus has, besides Go's.
func TestDurations(t *testing.T) {
	o, err := parse(strings.Fields("--nodeid n --afterlifespan 1w2d --pruneinterval 1500ms --orphan-grace 1.5d"), io.Discard)
	if err == nil {
		t.Errorf("a fraction of days was taken for %v", o.orphanGrace)
	}
	o, err = parse(strings.Fields("--nodeid n --afterlifespan 1w2d --pruneinterval 1500ms --orphan-grace 1d12h"), io.Discard)
	if err != nil || o.afterLifespan != 9*24*time.Hour || o.pruneInterval != 1500*time.Millisecond || o.orphanGrace != 36*time.Hour {
		t.Errorf("%v, %v, %v, %v; want 9 days, 1.5 seconds and 36 hours", o.afterLifespan, o.pruneInterval, o.orphanGrace, err)
	}
	var stdout strings.Builder
	if err := realMain(t.Context(), []string{"--help"}, &stdout); !errors.Is(err, pflag.ErrHelp) {
		t.Error(err)
	}
	for _, want := range []string{"--afterlifespan duration", "(default 12h)", "(default 10m)", "(default 5s)"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("--help does not have %q:\n%s", want, &stdout)
		}
	}
}

func TestVersionAndHelpNeedNoNode(t *testing.T) {
	var stdout strings.Builder
	if err := realMain(t.Context(), []string{"--version"}, &stdout); err != nil || stdout.String() != "katbox dev (unknown commit)\n" {
		t.Errorf("--version: %q, %v", stdout.String(), err)
	}
	stdout.Reset()
	if err := realMain(t.Context(), []string{"--help"}, &stdout); !errors.Is(err, pflag.ErrHelp) ||
		!strings.Contains(stdout.String(), "--afterlifespan") {
		t.Errorf("--help: %q, %v", stdout.String(), err)
	}
	if code := program.ExitCode(programName, pflag.ErrHelp, io.Discard); code != 0 {
		t.Errorf("--help exits with %d", code)
	}
}

func TestLoggerRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := newLogger("loud", "json", io.Discard); err == nil {
		t.Error("level loud was accepted")
	}
	if _, err := newLogger("info", "xml", io.Discard); err == nil {
		t.Error("format xml was accepted")
	}
}
