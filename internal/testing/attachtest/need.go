package attachtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// Environment variables, which .ci/guest sets.
const (
	// Variable has to be 1 for a test to use the kernel's NFS and iSCSI.
	Variable = "KATBOX_ARRAY_TESTS"
	// dirVariable names a directory for the arrays' data, on a file system with reflinks.
	dirVariable = "KATBOX_ARRAY_DIR"
	// addressVariable is the address of this machine as a node.
	addressVariable = "KATBOX_NODE_ADDRESS"
)

// Need lets the test go on only in the virtual machine of make guest SUITE=attach. Elsewhere it is skipped.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) != "1" {
		roottest.Lacks(t, "the kernel's NFS and iSCSI", "run it with make guest SUITE=attach")
	}
}

// NodeAddress is the address of this machine as a node: arrays see their NFS clients come from it.
func NodeAddress(t testing.TB) string {
	t.Helper()
	return variable(t, addressVariable)
}

func variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("attachtest: %s=1, but %s is not set", Variable, name)
	}
	return value
}

// Run runs a command, and returns what it has written. It fails the test when the command fails.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := Try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// Try runs a command that may fail.
func Try(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
