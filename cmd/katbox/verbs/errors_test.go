package verbs

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// answerWith makes the node answer all requests for bytes with an error.
func (n *node) answerWith(code int, reason api.Reason) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/bytes") {
			return false
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"so \u001b it is"}`, code, reason)
		return true
	}
}

func TestExitCodesAndAdvice(t *testing.T) {
	n := newNode(t)
	someFiles(t, n.add(1, "etl/nightly/scratch", time.Hour))
	n.add(2, "etl/nightly/cache", 2*time.Hour)
	n.add(3, "etl/live/scratch", 0)
	n.change(3, func(d *volume.Description) { d.Record.Phase = volume.Published })
	for _, test := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{verbs.CodeUsage, []string{"frobnicate"}, []string{"there is no verb frobnicate; see katbox help"}},
		{verbs.CodeUsage, []string{"help", "frobnicate"}, []string{"there is no verb frobnicate"}},
		{verbs.CodeUsage, []string{"sta"}, []string{"there is no verb sta; did you mean stat? see katbox help"}},
		{verbs.CodeUsage, []string{"unpinn"}, []string{"did you mean unpin?"}},
		{verbs.CodeUsage, []string{"inspect", "--frob", id(1)}, []string{"unknown flag: --frob: the verb comes first"}},
		{verbs.CodeUsage, []string{"delete", id(1)}, []string{"did you mean rm?"}},
		{verbs.CodeUsage, []string{"cat"}, []string{"an argument is missing: katbox cat TARGET:PATH..."}},
		{verbs.CodeUsage, []string{"stat", "a/b", "c/d"}, []string{`unexpected argument "c/d"`}},
		{verbs.CodeUsage, []string{"cat", "--frob", "x"}, []string{"unknown flag: --frob; see katbox cat --help"}},
		{verbs.CodeUsage, []string{"cat", "etl/nightly"}, []string{"names no file: add a colon"}},
		{verbs.CodeUsage, []string{"ls", "-l", "etl"}, []string{"--long is for lists of files"}},
		{verbs.CodeUsage, []string{"ls", "--since", "6h", "etl/nightly:"}, []string{"--since is for lists of volumes"}},
		{verbs.CodeUsage, []string{"ls", "--since", "soon"}, []string{"write it as 90m, 6h or 2d"}},
		{verbs.CodeUsage, []string{"ls", "-n", "ci", "etl"}, []string{"give one"}},
		{verbs.CodeUsage, []string{"ls", "--limit", "-1"}, []string{"negative"}},
		{verbs.CodeUsage, []string{"ls", "-o", "yaml"}, []string{"not wide, json or name"}},
		{verbs.CodeUsage, []string{"tail", "-n", "1", "-c", "1", "etl/nightly:x"}, []string{"give one"}},
		{verbs.CodeUsage, []string{"tail", "-c", "some", "etl/nightly:x"}, []string{"not a number of bytes"}},
		{verbs.CodeUsage, []string{"cp", "--symlinks", "follow", "etl/nightly", "x"}, []string{"neither skip nor keep"}},
		{verbs.CodeUsage, []string{"cp", "--from", "5", "etl/nightly", "x"}, []string{"--from is for DEST -"}},
		{verbs.CodeUsage, []string{"cp", "etl/nightly", ""}, []string{"DEST is empty"}},
		{verbs.CodeUsage, []string{"cp", "--exclude", "*", id(1) + ":out/log.txt", "x"}, []string{"--exclude is for directories"}},
		{verbs.CodeNoVolume, []string{"cat", "etl/gone:log"}, []string{"no retained volume on this node matches etl/gone", "kubectl exec"}},
		{verbs.CodeNoVolume, []string{"cat", "etl/live:log"}, []string{"kubectl exec"}},
		{verbs.CodeNoVolume, []string{"cat", "etl/nightly/other:log"},
			[]string{"has no retained volume other, but others: see katbox ls etl/nightly"}},
		{verbs.CodeNoVolume, []string{"ls", id(9)}, []string{"there is no volume with the ID"}},
		{verbs.CodeNoVolume, []string{"cat", "etl:log"}, []string{"to name a pod, give NAMESPACE/POD"}},
		{verbs.CodeFailed, []string{"cat", id(3) + ":log"}, []string{"read its files with kubectl exec"}},
		{verbs.CodeFailed, []string{"cat", id(1) + ":nothing"}, []string{"nothing"}},
		{verbs.CodeFailed, []string{"ls", id(1) + ":nothing"}, []string{"nothing"}},
		{verbs.CodeFailed, []string{"cat", id(1) + ":out"}, []string{`"/out" is a directory: katbox ls lists it`}},
		{verbs.CodeFailed, []string{"cat", id(1) + ":link"}, []string{"link"}},
		{verbs.CodeFailed, []string{"rm", "--yes", id(3)}, []string{"is Published: a pod uses it"}},
		{verbs.CodeFailed, []string{"cp", id(1) + ":link", "x"}, []string{"is a symlink: only files and directories are copied"}},
	} {
		mustFail(t, test.code, test.args, test.texts...)
	}
}

// TestSeveralVolumesMatch: the user sees them and chooses one, or takes the newest.
func TestSeveralVolumesMatch(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", 2*time.Hour)+"/log", "old\n")
	write(t, n.add(2, "etl/nightly/scratch", time.Hour)+"/log", "new\n")
	r := katbox(t, "cat", "etl/nightly:log")
	want := fmt.Sprintf(`NAMESPACE  POD      VOLUME   SIZE  RETAINED  EXPIRES  OUTCOME  ID
etl        nightly  scratch  -     60m ago   in 11h   -        %s
etl        nightly  scratch  -     2h ago    in 10h   -        %s
katbox cat: 2 retained volumes match etl/nightly: give one of these IDs, or --last for the newest
`, id(2), id(1))
	r.stderr, want = inHours(r.stderr), inHours(want)
	if r != (result{"", want, verbs.CodeFailed}) {
		t.Errorf("exit code %d, stdout %q, stderr\n%s\nwant\n%s", r.code, r.stdout, r.stderr, want)
	}
	mustPrint(t, "new\n", "cat", "--last", "etl/nightly:log")
	mustPrint(t, "old\n", "cat", id(1)+":log")
	mustPrint(t, id(2)+":log\n", "ls", "--last", "-o", "name", "etl/nightly:")
	for i := range 2 * mostMatches {
		n.add(100+i, "etl/nightly/scratch", 3*time.Hour)
	}
	r = katbox(t, "cat", "etl/nightly:log")
	if r.code != verbs.CodeFailed || strings.Count(r.stderr, "\n") != mostMatches+2 || !strings.Contains(r.stderr,
		"more than 20 retained volumes match") {
		t.Errorf("%+v", r)
	}
}

func TestErrorsOfTheDaemon(t *testing.T) {
	n := newNode(t)
	someFiles(t, n.add(1, "etl/nightly/scratch", time.Hour))
	for _, test := range []struct {
		status int
		reason api.Reason
		code   int
		text   string
	}{
		{http.StatusGone, api.Expired, verbs.CodeNoVolume, `so \x1b it is`},
		{http.StatusConflict, api.Conflict, verbs.CodeFailed, "kubectl exec"},
		{http.StatusTooManyRequests, api.TooManyRequests, verbs.CodeFailed, "try again later"},
		{http.StatusServiceUnavailable, api.ServiceUnavailable, verbs.CodeFailed, `so \x1b it is`},
		{http.StatusInternalServerError, api.InternalError, verbs.CodeFailed, `so \x1b it is`},
	} {
		n.answerWith(test.status, test.reason)
		mustFail(t, test.code, []string{"cat", "etl/nightly:out/log.txt"}, test.text)
		dest := t.TempDir()
		mustFail(t, test.code, []string{"cp", "etl/nightly:out/log.txt", dest}, test.text)
		verbstest.WantNames(t, dest)
	}
}

// TestNoDaemon: the message says at which socket, and what to do.
func TestNoDaemon(t *testing.T) {
	dir := t.TempDir()
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/left.sock"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	write(t, dir+"/file", "")
	for socket, text := range map[string]string{
		dir + "/missing.sock": "kubectl -n katbox exec POD -- /katbox ls",
		dir + "/left.sock":    "no daemon answers",
		dir + "/file/x":       "is not a socket",
	} {
		mustFail(t, verbs.CodeFailed, []string{"ls", "--socket", socket}, socket, text)
		t.Setenv(socketVariable, socket)
		mustFail(t, verbs.CodeFailed, []string{"ls"}, socket, text)
	}
	s := &session{socket: "/csi/admin.sock"}
	if err := s.explain(fmt.Errorf("dial: %w", syscall.EACCES)); !strings.Contains(err.Error(), "run katbox as root") {
		t.Error(err)
	}
	t.Setenv(socketVariable, "")
	mustFail(t, verbs.CodeFailed, []string{"top"}, standardSocket)
}

func TestHelp(t *testing.T) {
	help := katbox(t, "help")
	if help.code != 0 || help.stderr != "" || strings.Count(help.stdout, "\n") > 18 {
		t.Errorf("%+v", help)
	}
	for line := range strings.Lines(help.stdout) {
		if len(line) > 110 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	for _, verb := range program().Commands() {
		name := verb.Name()
		if !strings.Contains(help.stdout, "  "+name+" ") {
			t.Errorf("katbox help does not have %s", name)
		}
		one := katbox(t, name, "--help")
		if one.code != 0 || one.stderr != "" || !strings.HasPrefix(one.stdout, "katbox "+name) || !strings.Contains(one.stdout, "--socket") {
			t.Errorf("%+v", one)
		}
		if katbox(t, "help", name) != one {
			t.Errorf("katbox help %s is not katbox %s --help", name, name)
		}
	}
}

// TestABrokenPipeIsQuiet: katbox cat | head.
func TestABrokenPipeIsQuiet(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", strings.Repeat("many lines\n", 1<<20))
	for _, args := range [][]string{{"cat", "etl/nightly:log"}, {"cp", "etl/nightly", "-"}, {"ls"}} {
		cmd := process(t, args...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if args[0] == "ls" {
			out.Close()
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if args[0] != "ls" {
			if _, err := out.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			out.Close()
		}
		if code := codeOfProcess(t, cmd.Wait()); code != verbs.CodeBrokenPipe || stderr.Len() > 0 {
			t.Errorf("katbox %q: exit code %d, stderr %q", args, code, &stderr)
		}
	}
	var stderr strings.Builder
	if code := Run(t.Context(), []string{"ls"}, nil, broken{}, &stderr); code != verbs.CodeBrokenPipe || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestAFullDiskIsAnError: what cannot be written is not taken for written.
func TestAFullDiskIsAnError(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", "x\n")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"ls"}, {"cat", "etl/nightly:log"}, {"help"}, {"top"}, {"ls", "-o", "json"}, {"stat", id(1)}} {
		var stderr strings.Builder
		if code := Run(t.Context(), args, nil, full, &stderr); code != verbs.CodeFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("katbox %q: exit code %d, stderr %q", args, code, &stderr)
		}
	}
}

// TestInterrupt: an interrupted verb ends soon and says nothing, also while a reader stalls.
func TestInterrupt(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", strings.Repeat("many lines\n", 1<<20))
	for _, args := range [][]string{{"cat", "etl/nightly:log"}, {"ls"}} {
		started := make(chan struct{})
		if args[0] == "ls" {
			n.mu.Lock()
			n.front = func(_ http.ResponseWriter, r *http.Request) bool {
				close(started)
				<-r.Context().Done()
				return true
			}
			n.mu.Unlock()
		}
		cmd := process(t, args...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if args[0] == "ls" {
			<-started
		} else if _, err := out.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := codeOfProcess(t, cmd.Wait()); code != verbs.CodeInterrupted || stderr.Len() > 0 {
			t.Errorf("katbox %q: exit code %d, stderr %q", args, code, &stderr)
		}
	}
}
