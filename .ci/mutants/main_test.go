package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	if os.Getenv("MUTANTS_TEST_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needRoot skips a test where there are no namespaces.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// directory is outside of /tmp: the sandbox has another one.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "mutants-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// program prepares the program for a module of one package, whose tests are given. What it makes is below work.
func program(t *testing.T, tests string) (cmd *exec.Cmd, out *bytes.Buffer, work string) {
	t.Helper()
	needRoot(t)
	root := directory(t)
	for name, text := range map[string]string{
		"go.mod":    "module example.com/p\n\ngo 1.26\n",
		"p.go":      "package p\n\nfunc double(n int) int { return n + n }\n",
		"p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar fifo = os.Getenv(\"MUTANTS_TEST_FIFO\")\n\n" + tests,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, work = new(bytes.Buffer), directory(t)
	cmd = exec.Command(self, "-root", root, "-work", work, ".")
	cmd.Env = append(os.Environ(), "MUTANTS_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out, work
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("%s is left", e.Name())
	}
}

func TestCaught(t *testing.T) {
	cmd, out, work := program(t, `func TestDouble(t *testing.T) {
	if double(3) != len(fifo)+6 {
		t.Fatal("wrong")
	}
}
`)
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "example.com/p: 2 caught, 0 without an end in time, 0 passed") {
		t.Errorf("%v\n%s", err, out)
	}
	wantEmpty(t, work)
}

// TestInterrupted: a signal while the tests are measured leaves nothing.
func TestInterrupted(t *testing.T) {
	cmd, out, work := program(t, `func TestHang(t *testing.T) {
	if _, err := os.OpenFile(fifo, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	select {}
}
`)
	fifo := filepath.Join(directory(t), "begun")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "MUTANTS_TEST_FIFO="+fifo)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun, err := os.OpenFile(fifo, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), ": interrupted") {
		t.Errorf("%v\n%s", err, out)
	}
	wantEmpty(t, work)
}

// TestNoneCanPass: where no test passes unchanged, nothing is found out about mutants.
func TestNoneCanPass(t *testing.T) {
	cmd, out, work := program(t, `func TestDouble(t *testing.T) {
	if double(3) != 6 || os.WriteFile("outside", nil, 0o600) != nil {
		t.Fatal("wrong, or fifo", fifo)
	}
}
`)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "none of its 1 tests passes in the sandbox") {
		t.Errorf("%v\n%s", err, out)
	}
	wantEmpty(t, work)
}

// TestFailsBesideOthers: a test that fails beside another, without a mutant, catches none.
func TestFailsBesideOthers(t *testing.T) {
	cmd, out, work := program(t, `var before = len(fifo)

func TestBefore(t *testing.T) { before++ }

func TestDouble(t *testing.T) {
	if before += double(0); before > 0 {
		t.Fatal("something was before")
	}
}
`)
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "TestDouble, beside the others: fails: ") ||
		!strings.Contains(out.String(), "0 caught, 0 without an end in time, 0 passed, 0 passed what the budget allowed, 2 reached") {
		t.Errorf("%v\n%s", err, out)
	}
	wantEmpty(t, work)
}

// TestSandboxFails: a sandbox that cannot be made is no test that fails, neither before the first mutant nor at one.
func TestSandboxFails(t *testing.T) {
	for name, tt := range map[string]struct{ refused, want string }{
		"at once":     {"*", "mutants: example.com/p: the sandbox cannot be made: exit status 1: unshare: refused"},
		"at a mutant": {"[01]", ": the sandbox cannot be made: exit status 1: unshare: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out, work := program(t, `func TestDouble(t *testing.T) {
	if double(3) != len(fifo)+6 {
		t.Fatal("wrong")
	}
}
`)
			unshare, err := exec.LookPath("unshare")
			if err != nil {
				t.Fatal(err)
			}
			bin := directory(t)
			text := "#!/bin/sh\ncase $KATBOX_MUTANT in " + tt.refused + ") echo unshare: refused >&2; exit 1 ;; esac\n" +
				"exec " + unshare + ` "$@"` + "\n"
			if err := os.WriteFile(filepath.Join(bin, "unshare"), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
			err = cmd.Run()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), tt.want) || strings.Contains(out.String(), "caught ") {
				t.Errorf("%v\n%s", err, out)
			}
			wantEmpty(t, work)
		})
	}
}
