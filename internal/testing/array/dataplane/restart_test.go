package dataplane_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/attachtest"
)

// program is a fakearray with a kernel's data plane.
type program struct {
	url string
	cmd *exec.Cmd
}

func startProgram(t *testing.T, dir, portal string) *program {
	t.Helper()
	path := os.Getenv("KATBOX_FAKEARRAY_PROGRAM")
	if path == "" {
		t.Fatal("KATBOX_FAKEARRAY_PROGRAM is not set")
	}
	cmd := exec.Command(path, "--data-plane", "kernel", "--data-dir", dir, "--portal", portal, "--source-address", attachtest.NodeAddress(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		_ = cmd.Wait()
		t.Fatalf("fakearray has not started: %s", said.String())
	}
	p := &program{lines.Text(), cmd}
	t.Cleanup(p.kill)
	return p
}

// kill ends it without a chance to tidy up.
func (p *program) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (p *program) do(t *testing.T, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Access-Key", "token")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || strings.HasPrefix(path, "/api/") && !strings.Contains(string(text), `"status":0`) {
		t.Fatalf("%s %s %s: %s, %v", method, path, body, text, err)
	}
}

// TestArrayRestarts: the program of an array is killed while its volumes are in use, which go on; the next
// one finds all that was exported, and goes on.
func TestArrayRestarts(t *testing.T) {
	attachtest.Need(t)
	dir := filepath.Join(os.Getenv("KATBOX_ARRAY_DIR"), "restarts")
	const portal, target = "10.127.0.1", "iqn.2011-04.com.zadara:vsa-00000001:00000000000000000000000000000001:1"
	t.Cleanup(func() {
		plane, err := dataplane.NewKernel(dataplane.Config{Dir: dir})
		if err == nil {
			_, err = plane.Found(target)
		}
		if err == nil {
			err = plane.Destroy()
		}
		if err != nil {
			t.Error(err)
		}
	})
	p := startProgram(t, dir, portal)
	p.do(t, "POST", "/api/volumes.json", "name=restarts&capacity=1&pool=pool-00000001")
	p.do(t, "POST", "/api/servers.json", "display_name=n&iqn=iqn.n&iscsi="+attachtest.NodeAddress(t))
	p.do(t, "POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001&access_type=NFS")
	mounted := mountNFS(t, pools.Attachment{Export: portal + ":/export/restarts"})
	w := attachtest.StartWriter(t, filepath.Join(mounted, "file"))
	w.More(t)
	p.kill()
	w.More(t)
	p = startProgram(t, dir, portal)
	w.More(t)
	p.do(t, "POST", "/api/volumes/volume-00000001/expand.json", "capacity=1")
	w.More(t)
	w.End(t)
	if mib := size(t, mounted); mib < 1900 {
		t.Errorf("after the expansion to 2 GiB it has %d MiB", mib)
	}
	// What a program has not unexported, as it was killed, the next one does.
	p.kill()
	attachtest.Run(t, "exportfs", "-o", "rw,no_subtree_check,fsid="+fsid(t, "/export/restarts"), "10.127.0.9:/export/restarts")
	p = startProgram(t, dir, portal)
	if out := attachtest.Run(t, "exportfs", "-s"); strings.Contains(out, "10.127.0.9") {
		t.Errorf("an export that no server has is left: %s", out)
	}
	unmount(t, mounted)
	p.do(t, "DELETE", "/fake/volumes/volume-00000001", "")
	if out := attachtest.Run(t, "exportfs", "-s"); strings.Contains(out, "/export/restarts") {
		t.Errorf("the export of a deleted volume is left: %s", out)
	}
}

// fsid of an export.
func fsid(t *testing.T, path string) string {
	t.Helper()
	for line := range strings.Lines(read(t, "/var/lib/nfs/etab")) {
		if strings.HasPrefix(line, path+"\t") {
			_, after, _ := strings.Cut(line, "fsid=")
			id, _, _ := strings.Cut(after, ",")
			return id
		}
	}
	t.Fatalf("%s is not exported", path)
	return ""
}
