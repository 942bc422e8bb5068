package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/program"
)

// good are flags that are acceptable.
const good = "--namespace=katbox --chap-namespace=katbox-chap "

func TestFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "--namespace is missing",
		"--namespace=k":                    "--chap-namespace is missing",
		"--namespace=k --chap-namespace=k": "may read all Secrets",
		good + "--namespace=Kat_Box":       "--namespace",
		good + "more":                      "unexpected argument \"more\"",
		good + "--none":                    "--none",
		good + "--endpoint=tcp://x":        "--endpoint",
		good + "--endpoint=":               "--endpoint",
		good + "--driver-name=_":           "--driver-name",
		good + "--local-endpoint=tcp://x":  "--local-endpoint",
		good + "--local-endpoint=unix:///csi/csi.sock":         "--local-endpoint: is the same as --endpoint",
		good + "--local-driver-name=_":                         "--local-driver-name",
		good + "--local-driver-name=array.csi.katbox.io":       "--local-driver-name: is the same as --driver-name",
		good + "--http-endpoint=8":                             "--http-endpoint",
		good + "--probe-interval=0s":                           "--probe-interval: 0s is shorter",
		good + "--sync-interval=1ms":                           "--sync-interval",
		good + "--leader-election-lease=/":                     "--leader-election-lease",
		good + "--leader-election-namespace=_":                 "--leader-election-namespace",
		good + "--leader-election-identity=":                   "--leader-election-identity is missing",
		good + "--leader-election-retry-period=0":              "retry-period 0s is not positive",
		good + "--leader-election-renew-deadline=3s":           "less than two times the retry period",
		good + "--leader-election-lease-duration=11s":          "two replicas would serve",
		good + "--nodes-endpoint=9":                            "--nodes-endpoint",
		good + "--nodes-endpoint=:9 --nodes-service=_":         "--nodes-service",
		good + "--nodes-endpoint=:9 --nodes-service-account=_": "--nodes-service-account",
		good + "--nodes-endpoint=:9 --nodes-selector=":         "it selects all pods",
		good + "--nodes-endpoint=:9 --nodes-selector=,":        "--nodes-selector",
		good + "--nodes-endpoint=:9 --nodes-audience=":         "--nodes-audience: it is empty",
		good + "--nodes-endpoint=:9 --nodes-cert-secret=_":     "--nodes-cert-secret",
		good + "--nodes-endpoint=:9 --nodes-ca-configmap=":     "--nodes-ca-configmap",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := parse(strings.Fields(good), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.leaseNamespace != "katbox" || !o.elect || o.identity == "" || o.driverName != "array.csi.katbox.io" ||
		o.localDriverName != "local.csi.katbox.io" || o.localEndpoint != "" {
		t.Errorf("%+v", o)
	}
}

func TestHelpAndVersion(t *testing.T) {
	var stdout bytes.Buffer
	const want = "katbox-controller dev (unknown commit)\n"
	if err := realMain(t.Context(), []string{"--version"}, &stdout); err != nil || stdout.String() != want {
		t.Errorf("--version: %q, %v", stdout.String(), err)
	}
	stdout.Reset()
	if err := realMain(t.Context(), []string{"--help"}, &stdout); !errors.Is(err, pflag.ErrHelp) ||
		!strings.Contains(stdout.String(), "--chap-namespace") || program.ExitCode(programName, err, io.Discard) != 0 {
		t.Errorf("--help: %q, %v", stdout.String(), err)
	}
	for flags, want := range map[string]string{"--log-level=loud": "loud", "--log-format=x": "x", "--kubeconfig=/none": "--kubeconfig"} {
		if err := realMain(t.Context(), strings.Fields(good+flags), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

// TestReferenceNamesEveryFlag, as it does for the daemon.
func TestReferenceNamesEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../deploy/docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The controller\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var o options
	o.flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(section, "`--"+flag.Name+"`") {
			t.Errorf("deploy/docs/reference.md does not name the flag --%s", flag.Name)
		}
	})
}
