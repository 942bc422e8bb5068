package main

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/program"
)

func TestFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"":                                                         "--namespace is missing",
		"--namespace=Kat Box":                                      "--namespace",
		"--namespace=k more":                                       "unexpected argument \"more\"",
		"--namespace=k --none":                                     "--none",
		"--namespace=k --api-endpoint=":                            "--api-endpoint is missing",
		"--namespace=k --api-endpoint=1":                           "--api-endpoint",
		"--namespace=k --audience=":                                "--audience is missing",
		"--namespace=k --nodes-endpoint=:x":                        "--nodes-endpoint",
		"--namespace=k --http-endpoint=8":                          "--http-endpoint",
		"--namespace=k --service=a.b":                              "--service",
		"--namespace=k --nodes-service=":                           "--nodes-service",
		"--namespace=k --node-service-account=_":                   "--node-service-account",
		"--namespace=k --node-selector=":                           "selects all pods",
		"--namespace=k --node-selector=a=b=c":                      "--node-selector",
		"--namespace=k --cert-secret=/":                            "--cert-secret",
		"--namespace=k --ca-configmap=/":                           "--ca-configmap",
		"--namespace=k --cert-mode=none":                           "neither builtin nor given",
		"--namespace=k --cert-mode=given":                          "--cert-dir is missing",
		"--namespace=k --shutdown-delay=1m":                        "--shutdown-delay",
		"--namespace=k --outcomes=auto":                            "neither watch nor off",
		"--namespace=k --driver-name=":                             "--driver-name is missing",
		"--namespace=k --cert-dir=/c":                              "--cert-dir is of no use",
		"--namespace=k --hold-nodes --release-nodes":               "give one of them",
		"--namespace=k --hold-nodes":                               "--archive-bucket",
		"--namespace=k --archive-region=x":                         "--archive-bucket",
		"--namespace=k --archive-lifespan=3d":                      "--archive-bucket",
		"--namespace=k --archive-bucket=b --archive-lifespan=soon": "--archive-lifespan",
		"--namespace=k --archive-bucket=b --archive-lifespan=1m":   "--archive-lifespan",
	} {
		_, err := parse(strings.Fields(strings.ReplaceAll(args, "Kat Box", "Kat_Box")), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := parse([]string{"--namespace=katbox"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"katbox-gateway.katbox.svc", "katbox-gateway-nodes.katbox.svc"}; !slices.Equal(o.names(), want) {
		t.Errorf("the certificate is for %q, want %q", o.names(), want)
	}
}

func TestHelpAndVersion(t *testing.T) {
	var stdout bytes.Buffer
	if err := realMain(t.Context(), []string{"--version"}, &stdout); err != nil || stdout.String() != "katbox-gateway dev (unknown commit)\n" {
		t.Errorf("--version: %q, %v", stdout.String(), err)
	}
	stdout.Reset()
	if err := realMain(t.Context(), []string{"--help"}, &stdout); !errors.Is(err, pflag.ErrHelp) ||
		!strings.Contains(stdout.String(), "--nodes-endpoint") || program.ExitCode(programName, err, io.Discard) != 0 {
		t.Errorf("--help: %q, %v", stdout.String(), err)
	}
}

func TestExitCode(t *testing.T) {
	var stderr bytes.Buffer
	if code := program.ExitCode(programName, errors.New("broken\nin two"), &stderr); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d with %q, want 1 with one line", code, stderr.String())
	}
	if err := realMain(t.Context(), []string{"--namespace=k", "--log-level=loud"}, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "loud") {
		t.Errorf("level loud: %v", err)
	}
	if err := realMain(t.Context(), []string{"--namespace=k", "--kubeconfig=/none"}, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}
