//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// longStream is how long a stream has to live; it reads longBytes as slowly.
	longStream = 10 * time.Minute
	longBytes  = 64 << 20
	// manyBytes are read at full speed.
	manyBytes = 512 << 20
)

// filled is a pod that leaves a file of a number of bytes, which no file system keeps sparse.
func filled(name string, bytes int64) pod {
	return pod{Name: name, Scripts: []string{fmt.Sprintf("dd if=/dev/urandom of=/scratch/data bs=1048576 count=%d 2>&1; exit 1", bytes>>20)}}
}

// data is the file that a pod of filled left, on its node's disk.
func (c *gatewayCluster) dataFile(n int, v rv) string {
	return filepath.Join(c.nodeDir(n), "katbox-data", v.Spec.PodUID, v.Spec.VolumeID, "data")
}

func digest(r io.Reader) (string, int64, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

func (c *gatewayCluster) digestOf(path string) string {
	c.t.Helper()
	f, err := os.Open(path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	sum, _, err := digest(f)
	if err != nil {
		c.t.Fatal(err)
	}
	return sum
}

// open begins a download.
func (p person) open(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	client, server := p.client()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	return client.Do(request)
}

// slowly reads so that the whole takes a time.
type slowly struct {
	io.Reader
	perSecond int
}

// Read reads a second's bytes.
func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return io.ReadFull(s.Reader, p[:min(len(p), s.perSecond)])
}

// beginLongStream begins a download that takes ten minutes (T15), and returns what waits for it.
func (c *gatewayCluster) beginLongStream() func(*testing.T) {
	c.t.Helper()
	v := c.retained("other", 2, filled("long", longBytes))
	want := c.digestOf(c.dataFile(2, v))
	answer, err := c.admin().open(c.t.Context(), v.path()+"/log?path=data", nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%v, %+v", err, answer)
	}
	type outcome struct {
		sum  string
		n    int64
		err  error
		took time.Duration
	}
	ended := make(chan outcome, 1)
	go func() {
		defer answer.Body.Close()
		began := time.Now()
		sum := sha256.New()
		n, err := io.CopyBuffer(struct{ io.Writer }{sum}, slowly{answer.Body, int(longBytes / (longStream / time.Second))}, make([]byte, 1<<20))
		if errors.Is(err, io.ErrUnexpectedEOF) && n == longBytes {
			err = nil // the last second's bytes were fewer
		}
		ended <- outcome{hex.EncodeToString(sum.Sum(nil)), n, err, time.Since(began)}
	}()
	return func(t *testing.T) {
		got := <-ended
		if got.err != nil || got.n != longBytes || got.sum != want {
			t.Errorf("after %s: %d bytes, digest %s: %v; want %d, %s", got.took, got.n, got.sum, got.err, longBytes, want)
		}
		t.Logf("a stream of %s, %d bytes", got.took, got.n)
	}
}

// testThroughput compares a download through the API server with what the same API server gives "kubectl exec -- cat" of as
// large a file of a pod that still runs. How fast that is depends on the machine and on what else it does, so they take turns; a
// download is no slower. The read over the node's own socket says what the network, TLS and three programs on the way take.
func (c *gatewayCluster) testThroughput() {
	kubectl := func(args ...string) func() (int64, error) {
		return func() (int64, error) {
			return c.output(c.kube, append([]string{"kubectl", "--kubeconfig", c.kubeconfigOf(bob)}, args...)...)
		}
	}
	v := c.retained("ci", 1, filled("many", manyBytes))
	want := c.digestOf(c.dataFile(1, v)) // it is in the page cache then
	socket := filepath.Join(c.kubeletDir(), "plugins", driverName, "admin.sock")
	node := atLeast(manyBytes, func() (int64, error) {
		return c.output("../../bin/linux/amd64/katbox", "cat", "--socket", socket, v.Spec.VolumeID+":data")
	})
	through := atLeast(manyBytes, kubectl("get", "--raw", v.path()+"/log?path=data"))

	running := filled("running", manyBytes)
	running.Scripts[0] = strings.Replace(running.Scripts[0], "exit 1",
		"touch /scratch/ready; until [ -e /scratch/over ]; do sleep 1; done; exit 1", 1)
	c.retainedAfter("ci", 1, running, func() {
		in := func(script string) error {
			_, err := c.tryKubectl("", "-n", "ci", "exec", running.Name, "--", "sh", "-c", script)
			return err
		}
		c.eventually("the file is there", func() error { return in("test -e /scratch/ready") })
		// The end of what a process prints before it ends may not get through kubectl exec: what came is counted.
		executed := atLeast(manyBytes*9/10, kubectl("-n", "ci", "exec", running.Name, "--", "cat", "/scratch/data"))
		rates := c.fastest(executed, through, node)
		ratio := rates[1] / rates[0]
		c.t.Logf("MB/s: %.1f with kubectl exec, %.1f as a download: %.2f of its speed; %.1f over the node's socket",
			rates[0], rates[1], ratio, rates[2])
		if ratio < 1 {
			c.t.Errorf("a download has %.2f of the speed of kubectl exec, want 1", ratio)
		}
		if err := in("touch /scratch/over"); err != nil {
			c.t.Fatal(err)
		}
	})
	answer, err := c.as(bob).open(c.t.Context(), v.path()+"/log?path=data", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, _, err := digest(answer.Body); err != nil || got != want {
		c.t.Errorf("the download has the digest %s: %v, want %s", got, err, want)
	}
}

// atLeast fails a read of fewer bytes, or of more than manyBytes.
func atLeast(least int64, read func() (int64, error)) func() (int64, error) {
	return func() (int64, error) {
		n, err := read()
		if err == nil && (n < least || n > manyBytes) {
			err = fmt.Errorf("%d bytes came, want %d", n, int64(manyBytes))
		}
		return n, err
	}
}

// fastest lets the reads take turns, three times, and returns the highest rate of each in MB/s. It takes up to nine turns
// until the second is as fast as the first: on a busy machine either may have had less of it in all three.
func (c *gatewayCluster) fastest(reads ...func() (int64, error)) []float64 {
	c.t.Helper()
	rates := make([]float64, len(reads))
	for turn := 0; turn < 3 || turn < 9 && rates[1] < rates[0]; turn++ {
		for i, read := range reads {
			began := time.Now()
			n, err := read()
			if err != nil {
				c.t.Fatalf("read %d: %d bytes: %v", i, n, err)
			}
			rates[i] = max(rates[i], float64(n)/1e6/time.Since(began).Seconds())
		}
		c.t.Logf("MB/s until turn %d: %.1f", turn+1, rates)
	}
	return rates
}

// output runs a program and counts what it prints. A client is a program of its own: this one is slowed down by the race
// detector.
func (c *gatewayCluster) output(name string, args ...string) (int64, error) {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	return n, errors.Join(err, cmd.Wait())
}

// testRollout: a rollout of the gateway cuts a download, which goes on where it was cut (T17). It
// never looks complete.
func (c *gatewayCluster) testRollout() {
	v := c.retained("ci", 1, filled("rollout", longBytes))
	want := c.digestOf(c.dataFile(1, v))
	began, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	sum, offset := sha256.New(), int64(0)
	var tag string
	go func() {
		answer, err := c.as(bob).open(c.t.Context(), v.path()+"/log?path=data", nil)
		if err != nil {
			ended <- err
			return
		}
		defer answer.Body.Close()
		tag = answer.Header.Get("Etag")
		n, err := io.CopyN(sum, answer.Body, 1<<20)
		offset += n
		close(began)
		if err == nil {
			<-release
			n, err = io.Copy(sum, answer.Body)
			offset += n
		}
		ended <- err
	}()
	<-began
	c.replaceGateway()
	close(release)
	if err := <-ended; err == nil {
		c.t.Errorf("a download of %d bytes that a rollout met ends without an error after %d", longBytes, offset)
	} else {
		c.t.Logf("cut at %d of %d bytes: %v", offset, longBytes, err)
	}
	var answer *http.Response
	// The node may not have come back to the new gateway yet: a client asks again.
	c.eventually("the rest of a download comes", func() (err error) {
		answer, err = c.as(bob).open(c.t.Context(), v.path()+"/log?path=data", http.Header{
			"Range": {fmt.Sprintf("bytes=%d-", offset)}, "If-Range": {tag},
		})
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return errors.Join(fmt.Errorf("%s, Retry-After %q: %s", answer.Status, answer.Header.Get("Retry-After"), body), err)
	})
	defer answer.Body.Close()
	n, err := io.Copy(sum, answer.Body)
	got := hex.EncodeToString(sum.Sum(nil))
	if err != nil || answer.StatusCode != http.StatusPartialContent || offset+n != longBytes || got != want {
		c.t.Errorf("the rest: %s, %d bytes after %d: %v; digest %s, want %s", answer.Status, n, offset, err, got, want)
	}
	if logs := strings.Contains(c.gatewayLogs(), "panic"); logs {
		c.t.Error("the gateway panicked")
	}
}
