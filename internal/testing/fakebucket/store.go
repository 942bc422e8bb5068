package fakebucket

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The bucket and what requests are signed with.
const (
	Name   = "evidence"
	Region = "eu-test-1"
	ID     = "AKIDFAKE"
	Secret = "fake/secret+key"
)

// mostObject bounds an object, and mostKey its key, as S3 does for one PUT.
const (
	mostObject = 128 << 20
	mostKey    = 1024
)

// Store is a bucket.
type Store struct {
	// URL is where it is.
	URL string

	server *httptest.Server
	mu     sync.Mutex
	// objects by key, and the keys in order.
	objects map[string]object
	sorted  []string
	// asked counts requests by verb: LIST, GET, HEAD, PUT, DELETE.
	asked map[string]int
	fail  func(verb, key string) int
	// lax: checksums and lengths are not compared with what was signed.
	lax bool
	// now is its clock, and written what it takes as the time when an object is written.
	now, written func() time.Time
}

type object struct {
	content  []byte
	modified time.Time
}

// New starts a store, until the test ends.
func New(t testing.TB) *Store {
	s := &Store{objects: map[string]object{}, asked: map[string]int{}, now: time.Now, written: time.Now}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	s.URL = s.server.URL
	return s
}

// Credentials writes the files with its credentials, and returns their directory.
func Credentials(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"access-key-id": ID + "\n", "secret-access-key": Secret} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Stop makes it refuse connections.
func (s *Store) Stop() { s.server.Close() }

// Fail sets what is asked about each request: a status that is not 0 is the answer. The status 1 cuts the connection.
func (s *Store) Fail(fail func(verb, key string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// Lax makes it a store that does not compare what it gets with the checksum and the length that were signed.
func (s *Store) Lax() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lax = true
}

// Clock sets its clock.
func (s *Store) Clock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// Written sets when objects are written from now on, as it says itself.
func (s *Store) Written(at func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = at
}

// Asked returns how many requests of a verb there were; of all if it is empty.
func (s *Store) Asked(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if verb != "" {
		return s.asked[verb]
	}
	sum := 0
	for _, n := range s.asked {
		sum += n
	}
	return sum
}

// Put writes an object as its owner does.
func (s *Store) Put(key string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(key, bytes.Clone(content))
}

// Get returns an object; nil if there is none.
func (s *Store) Get(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key].content
}

// Remove deletes an object as its owner does.
func (s *Store) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

// Keys returns all keys with a prefix, in order.
func (s *Store) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys(prefix))
}

// keys returns all keys with a prefix. The caller does not change them.
func (s *Store) keys(prefix string) []string {
	from, _ := slices.BinarySearch(s.sorted, prefix)
	to := from
	for to < len(s.sorted) && strings.HasPrefix(s.sorted[to], prefix) {
		to++
	}
	return s.sorted[from:to]
}

func (s *Store) set(key string, content []byte) {
	if i, there := slices.BinarySearch(s.sorted, key); !there {
		s.sorted = slices.Insert(s.sorted, i, key)
	}
	s.objects[key] = object{content, s.written()}
}

func (s *Store) drop(key string) {
	if i, there := slices.BinarySearch(s.sorted, key); there {
		s.sorted = slices.Delete(s.sorted, i, i+1)
	}
	delete(s.objects, key)
}

// ServeHTTP answers a request.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostObject))
	if err != nil {
		refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	key, ok := strings.CutPrefix(r.URL.Path, "/"+Name+"/")
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	verb := r.Method
	if verb == http.MethodGet && key == "" {
		verb = "LIST"
	}
	s.mu.Lock()
	s.asked[verb]++
	fail, now, lax := s.fail, s.now(), s.lax
	s.mu.Unlock()
	if fail != nil {
		switch code := fail(verb, key); code {
		case 0:
		case 1:
			panic(http.ErrAbortHandler)
		default:
			refuse(w, code, "Injected")
			return
		}
	}
	if code, why := authentic(r, now); why != "" {
		refuse(w, code, why)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch verb {
	case "LIST":
		s.list(w, r.URL.Query())
	case http.MethodGet, http.MethodHead:
		s.get(w, r, key)
	case http.MethodDelete:
		s.drop(key)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut:
		s.put(w, r, key, body, lax)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func (s *Store) get(w http.ResponseWriter, r *http.Request, key string) {
	o, ok := s.objects[key]
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	http.ServeContent(w, r, "", o.modified, bytes.NewReader(o.content))
}

func (s *Store) put(w http.ResponseWriter, r *http.Request, key string, body []byte, lax bool) {
	if len(key) > mostKey {
		refuse(w, http.StatusBadRequest, "KeyTooLongError")
		return
	}
	if sum := r.Header.Get("X-Amz-Checksum-Sha256"); sum != "" && !lax {
		if got := sha256.Sum256(body); base64.StdEncoding.EncodeToString(got[:]) != sum {
			refuse(w, http.StatusBadRequest, "BadDigest")
			return
		}
	}
	s.set(key, body)
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(code)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>the fake says no</Message></Error>", why)
}

type (
	listResult struct {
		XMLName      xml.Name `xml:"ListBucketResult"`
		IsTruncated  bool
		EncodingType string `xml:",omitempty"`
		// The list goes on behind it.
		NextContinuationToken string `xml:",omitempty"`
		KeyCount              int
		Contents              []content
		CommonPrefixes        []common
	}
	content struct {
		Key, LastModified string
		Size              int
	}
	common struct{ Prefix string }
)

// list answers with a page of keys.
func (s *Store) list(w http.ResponseWriter, q url.Values) {
	most, err := strconv.Atoi(q.Get("max-keys"))
	if q.Get("list-type") != "2" || err != nil || most < 1 {
		refuse(w, http.StatusBadRequest, "InvalidArgument")
		return
	}
	most = min(most, 1000)
	prefix, after, delimiter := q.Get("prefix"), q.Get("start-after"), q.Get("delimiter")
	if token := q.Get("continuation-token"); token != "" {
		after = token
	}
	encode := func(text string) string { return text }
	var result listResult
	if q.Get("encoding-type") == "url" {
		result.EncodingType, encode = "url", url.QueryEscape
	}
	last, seen := "", ""
	keys := s.keys(prefix)
	if delimiter == "" {
		from, _ := slices.BinarySearch(keys, after)
		keys = keys[from:]
	}
	for _, key := range keys {
		joined := ""
		if i := strings.Index(key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			joined = key[:len(prefix)+i+len(delimiter)]
		}
		switch {
		case key <= after, joined != "" && (joined == last || joined <= after && strings.HasPrefix(after, joined)):
			continue
		}
		if len(result.Contents)+len(result.CommonPrefixes) == most {
			result.IsTruncated, result.NextContinuationToken = true, seen
			break
		}
		if joined != "" {
			result.CommonPrefixes, last = append(result.CommonPrefixes, common{encode(joined)}), joined
			seen = joined + "\U0010FFFF"
			continue
		}
		seen = key
		o := s.objects[key]
		result.Contents = append(result.Contents, content{encode(key), o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), len(o.content)})
	}
	result.KeyCount = len(result.Contents) + len(result.CommonPrefixes)
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(result); err != nil {
		panic(http.ErrAbortHandler)
	}
}
