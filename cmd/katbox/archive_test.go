package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// archiveEnd is until when the archive of a test keeps volumes.
var archiveEnd = time.Now().Add(1000 * time.Hour).Truncate(time.Hour)

// archive plays a gateway that signs nothing, and a bucket.
type archive struct {
	t      testing.TB
	bucket *httptest.Server

	mu sync.Mutex
	// objects are by "ID NUMBER", uploads counts the uploads of each.
	objects map[string][]byte
	uploads map[string]int
	// node is the last one that has connected.
	node *uplinktest.Node
	// at, if not nil, is called at each upload: before the object is taken, and then after. It returns true if that is to fail.
	at func(taken bool) bool
}

func newArchive(t testing.TB) *archive {
	a := &archive{t: t, objects: map[string][]byte{}, uploads: map[string]int{}}
	a.bucket = httptest.NewServer(a)
	t.Cleanup(a.bucket.Close)
	return a
}

// ServeHTTP takes an object.
func (a *archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, err := io.ReadAll(r.Body)
	a.mu.Lock()
	at := a.at
	a.mu.Unlock()
	if err != nil || at != nil && at(false) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	key := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/"), "/", " ")
	a.mu.Lock()
	a.objects[key] = object
	a.uploads[key]++
	a.mu.Unlock()
	if at != nil && at(true) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// answer answers what a node asks in a line, over its connection.
func (a *archive) answer(n *uplinktest.Node, line api.Summary) {
	post := func(path string, body any) {
		text, err := json.Marshal(body)
		if err != nil {
			a.t.Error(err)
		}
		if answer, err := n.Ask(http.MethodPost, path, bytes.NewReader(text)); err == nil { // else the node is gone
			answer.Body.Close()
		}
	}
	var owners api.OwnerAnswers
	for _, ask := range line.Asks {
		owners.Items = append(owners.Items, api.OwnerAnswer{
			ID: ask.ID, PodUID: ask.PodUID, Owner: api.Owner{Verdict: "Confirmed", NamespaceUID: "ns-1"}, Seal: "sealed-for-" + ask.PodUID[:8],
		})
	}
	if len(owners.Items) > 0 {
		post(api.OwnersPath, owners)
	}
	var urls api.UploadAnswers
	for _, ask := range line.Uploads {
		if ask.Seal != "sealed-for-"+ask.PodUID[:8] || ask.Owner.NamespaceUID != "ns-1" {
			a.t.Errorf("the node asks %+v without what the gateway has given it", ask)
		}
		number := "index"
		answer := api.UploadAnswer{ID: ask.ID, Number: ask.Number(), Until: archiveEnd}
		if ask.Piece != nil {
			number, answer.SHA256 = ask.Piece.SHA256, ask.Piece.SHA256
		} else {
			answer.SHA256 = ask.Index.SHA256
		}
		a.mu.Lock()
		_, answer.There = a.objects[ask.ID+" "+number]
		a.mu.Unlock()
		answer.URL = a.bucket.URL + "/" + ask.ID + "/" + number
		urls.Items = append(urls.Items, answer)
	}
	if len(urls.Items) > 0 {
		post(api.UploadsPath, urls)
	}
}

// serve takes the connections of a node until the test ends, and returns where.
func (a *archive) serve(ca *uplinktest.Authority) (port string) {
	address := listenAsGateway(a.t, func(conn net.Conn) {
		n, err := uplinktest.Take(a.t.Context(), conn, ca.Leaf(a.t, "localhost"))
		if err != nil {
			return
		}
		summary, err := n.Ask(http.MethodGet, api.SummaryPath, nil)
		if err != nil {
			return // the node was killed
		}
		a.mu.Lock()
		a.node = n
		a.mu.Unlock()
		defer summary.Body.Close()
		for lines := json.NewDecoder(summary.Body); ; {
			var line api.Summary
			if lines.Decode(&line) != nil {
				return
			}
			a.answer(n, line)
		}
	})
	_, port, err := net.SplitHostPort(address)
	must(a.t, err)
	return port
}

// newArchivingDaemon returns a daemon that archives to a.
func newArchivingDaemon(t testing.TB, a *archive, flags ...string) *daemon {
	ca := uplinktest.NewAuthority(t)
	d := newDaemon(t, append(flags, "--afterlifespan", "1h", "--outcomes", "gateway", "--gateway", "localhost:"+a.serve(ca))...)
	d.flags = append(d.flags, "--gateway-ca", filepath.Join(d.dir, "ca.crt"), "--gateway-token", filepath.Join(d.dir, "token"))
	must(t, os.WriteFile(filepath.Join(d.dir, "token"), []byte("token"), 0o600), os.WriteFile(filepath.Join(d.dir, "ca.crt"), ca.PEM, 0o600))
	return d
}

// failedVolume is the ID of a volume with a name of its own.
func failedVolume(i int) (id, name string) {
	name = fmt.Sprint("v", i)
	return string(volume.KubeletID(testPod, name)), name
}

// fails retains a volume with some content whose pod has failed, once its owner is known.
func (a *archive) fails(d *daemon, i int, content []byte) (id string) {
	d.t.Helper()
	id, name := failedVolume(i)
	req := d.request(testPod, id)
	req.VolumeContext["csi.storage.k8s.io/pod.name"], req.VolumeContext["csi.storage.k8s.io/pod.namespace"] = "job-x7k2p", "ci"
	_, err := d.node.NodePublishVolume(d.t.Context(), req)
	must(d.t, err)
	must(d.t, os.WriteFile(filepath.Join(d.data(testPod, id), "content"), content, 0o600))
	d.eventually("the gateway has named the owner", func() bool {
		v, err := d.admin().Volume(d.t.Context(), id)
		return err == nil && v.Owner != nil
	})
	outcome := fmt.Sprintf(`{"items":[{"podUID":%q,"outcome":"Failed","volumes":[%q]}]}`, testPod, name)
	d.eventually("the outcome is taken", func() bool {
		a.mu.Lock()
		n := a.node
		a.mu.Unlock()
		answer, err := n.Ask(http.MethodPost, api.OutcomesPath, strings.NewReader(outcome))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		taken, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(taken), `"taken":1`)
	})
	d.unpublish(testPod, id)
	return id
}

// isArchived reports whether a volume is known to be archived.
func (d *daemon) isArchived(id string) func() bool {
	return func() bool {
		v, err := d.admin().Volume(d.t.Context(), id)
		return err == nil && v.ArchivedUntil != nil && v.ArchivedUntil.Equal(archiveEnd)
	}
}

// wantContent checks what the archive has of a volume.
func (a *archive) wantContent(id string, content []byte) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	index, err := archived.NewDecoder(bytes.NewReader(a.objects[id+" index"]))
	must(a.t, err)
	defer index.Close()
	expander, err := archived.NewExpander(1)
	must(a.t, err)
	defer expander.Close()
	var tar []byte
	for i, p := range index.Pieces() {
		piece, err := expander.Expand(nil, a.objects[id+" "+p.Sum.String()], archived.PieceLength(index.Head().Size, i))
		must(a.t, err)
		tar = append(tar, piece...)
	}
	for {
		e, err := index.Next()
		if errors.Is(err, io.EOF) {
			a.t.Errorf("the index of %s has no content", id)
			return
		}
		must(a.t, err)
		if e.Name == "content" {
			if !bytes.Equal(tar[e.Content:e.Content+e.Size], content) {
				a.t.Errorf("the archive of %s has other bytes", id)
			}
			return
		}
	}
}

// archiveContent takes two pieces.
func archiveContent() []byte { return noise(10 << 20) }

// noise is content that does not compress.
func noise(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	return content
}

// TestArchive: a daemon that is killed at each step of an upload archives the volume in the end, and uploads nothing twice that it
// knew to be there.
func TestArchive(t *testing.T) {
	a := newArchive(t)
	// Each object is met before and after it is taken: two pieces, and the index.
	const steps = 6
	reached, killed := make(chan struct{}), make(chan struct{})
	var step, met int
	a.at = func(taken bool) bool {
		a.mu.Lock()
		dies := met == step
		met++
		a.mu.Unlock()
		if dies {
			reached <- struct{}{}
			<-killed
		}
		return dies && !taken
	}
	d := newArchivingDaemon(t, a, "--archive", "OnFailure", "--archive-insecure")
	d.start()
	content := archiveContent()
	for i := range steps {
		a.mu.Lock()
		step, met = i, 0
		a.mu.Unlock()
		id := a.fails(d, i, content)
		<-reached
		d.crash()
		a.mu.Lock()
		step = -1
		a.mu.Unlock()
		killed <- struct{}{}
		d.eventually("the volume is archived", d.isArchived(id))
		a.wantContent(id, content)
		a.mu.Lock()
		total := 0
		for key, n := range a.uploads {
			if strings.HasPrefix(key, id) {
				total += n
			}
		}
		if total > 4 {
			t.Errorf("killed at step %d: %d uploads of 3 objects", i, total)
		}
		a.mu.Unlock()
	}
	d.crash()
	for i := range steps {
		if id, _ := failedVolume(i); !d.isArchived(id)() {
			t.Errorf("volume %d is forgotten to be archived", i)
		}
	}
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %s", code, d.stderr)
	}
}

// TestArchiveOff: without --archive nothing is asked, nothing is counted, and no attribute changes that.
func TestArchiveOff(t *testing.T) {
	a := newArchive(t)
	d := newArchivingDaemon(t, a, "--http-endpoint", httpEndpoint())
	d.start()
	req := d.request(testPod, volumeID(1))
	req.VolumeContext["archive"] = "Always"
	_, err := d.node.NodePublishVolume(t.Context(), req)
	must(t, err)
	d.unpublish(testPod, volumeID(1))
	a.fails(d, 2, []byte("x"))
	for name := range d.metrics() {
		if strings.HasPrefix(name, "katbox_archive_") {
			t.Errorf("%s is there", name)
		}
	}
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %s", code, d.stderr)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.objects) > 0 {
		t.Errorf("%d objects are uploaded", len(a.objects))
	}
}

// TestStopArchives: a daemon that is told to stop goes on with the volume of a failure, and stops once it is archived.
func TestStopArchives(t *testing.T) {
	a := newArchive(t)
	reached, goOn := make(chan struct{}, 100), make(chan struct{})
	a.at = func(bool) bool {
		reached <- struct{}{}
		<-goOn
		return false
	}
	d := newArchivingDaemon(t, a, "--archive", "Always", "--archive-insecure")
	d.start()
	content := archiveContent()
	id := a.fails(d, 1, content)
	<-reached
	if report := d.reportText(); !strings.Contains(report, "volumes   1 wait\n") {
		t.Errorf("the report does not say what waits:\n%.5000s", report)
	}
	must(t, d.process.Signal(syscall.SIGTERM))
	d.eventually("it stops", func() bool { return strings.Contains(d.stdout.String(), `"stopping"`) })
	close(goOn)
	if code := d.wait(); code != 0 || d.stderr.String() != "" {
		t.Errorf("exit code %d, %s", code, d.stderr)
	}
	a.wantContent(id, content)
}
