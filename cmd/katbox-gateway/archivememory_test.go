package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// goLimit is the GOMEMLIMIT of the gateway in this test. What it has without nodes and an archive is some 40 MiB of it.
	goLimit = 256 << 20
	// mostResident is what it may take nevertheless: Go counts no pages of the program, and heeds the limit as far as it can.
	mostResident = goLimit + 64<<20
)

// resident returns the pages that a process has in memory, in bytes, and the most that it ever had.
func (p *process) resident() (now, most int) {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.running.Process.Pid))
	must(p, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "VmRSS:":
			now = kib << 10
		case "VmHWM:":
			most = kib << 10
		}
	}
	return now, most
}

// archiveLarge puts volumes into the store whose indexes take 30 MiB each, with some pieces that do not compress.
func archiveLarge(t *testing.T, store *deadlyStore, pieces int, pods ...int) (all []volume.Record) {
	t.Helper()
	rng := rand.NewChaCha8([32]byte{2})
	noise := func(n int) []byte {
		b := make([]byte, n)
		_, _ = rng.Read(b)
		return b
	}
	encoder, err := form.NewEncoder()
	must(t, err)
	const header = 512
	size := int64(pieces) * form.PieceSize
	must(t, encoder.Entry(form.Entry{Name: "large", Type: api.File, Mode: 0o600, Size: size - header, Content: header, End: size}))
	for encoder.Size() < 30<<20 {
		name := base64.RawURLEncoding.EncodeToString(noise(2900))
		must(t, encoder.Entry(form.Entry{Name: name, Type: api.File, Mode: 0o600, Header: size, Content: size + header, End: size + header}))
		size += header
	}
	size += form.Trailer
	compressor, err := form.NewCompressor()
	must(t, err)
	var objects [][]byte
	var list []form.Piece
	for number := range int(form.Pieces(size)) {
		raw := make([]byte, form.PieceLength(size, number))
		if number < pieces {
			raw = noise(len(raw))
		}
		object := compressor.Compress(nil, raw)
		objects, list = append(objects, object), append(list, form.Piece{Length: int64(len(object)), Sum: form.SumOf(object)})
	}
	index, err := encoder.Finish(form.Head{Root: form.Entry{Type: api.Directory, Mode: 0o755}, Size: size}, list)
	must(t, err)
	until := time.Now().Add(100 * time.Hour).Truncate(time.Hour)
	for _, pod := range pods {
		uid := volume.PodUID(podUID(pod))
		r := volume.Record{
			ID: volume.KubeletID(uid, "scratch"), Pod: uid, PodName: podName(pod), Namespace: "ci",
			Published: time.Now().Add(-time.Hour), Unpublished: time.Now(),
		}
		place := form.Place{Cluster: clusterUID, NamespaceUID: ciUID, Place: r.Place()}
		for number, object := range objects {
			store.Put(place.PieceKey(number, list[number].Sum), object)
		}
		v := shownOf(r)
		v.ExpiresAt = &until
		key, err := form.IndexKey(clusterUID, v)
		must(t, err)
		store.Put(key, index)
		all = append(all, r)
	}
	return all
}

// TestMemoryOfReaders: 24 requests of readers who take nothing of what they have asked for, of which a half is refused, and volumes with
// large indexes, do not take more memory than the manifests give the archive.
func TestMemoryOfReaders(t *testing.T) {
	s := newCrashStage(t)
	t.Setenv("GOMEMLIMIT", strconv.Itoa(goLimit))
	const pieces = 4
	volumes := archiveLarge(t, s.store, pieces, 1, 2, 3)
	s.again()
	before, _ := s.resident()
	ask := func(user, path string, offset int64) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"https://"+s.api+"/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes/"+path, nil)
		must(t, err)
		r.Header.Set("X-Remote-User", user)
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
		answer, err := s.client.Do(r)
		must(t, err)
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 24 {
		asking.Go(func() {
			user := i / 2
			answer := ask(fmt.Sprint("user-", user), nameOf(volumes[user%3])+"/log?path=large", int64(i%pieces)*form.PieceSize)
			mu.Lock()
			defer mu.Unlock()
			codes[answer.StatusCode]++
		})
	}
	asking.Wait()
	now, most := s.resident()
	t.Logf("MiB resident: %d before, %d with the readers, %d at most; answers %v", before>>20, now>>20, most>>20, codes)
	// Of 12 slots a reader gets a second one while more are free than that.
	if streams := codes[http.StatusPartialContent]; streams < 8 || streams+codes[http.StatusTooManyRequests] != 24 {
		t.Errorf("answers %v, want 8 to 12 streams, and 429 for the others", codes)
	}
	if most > mostResident {
		t.Errorf("%d MiB were resident, want at most %d", most>>20, mostResident>>20)
	}
}
