package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/testing/apitest"
)

const (
	group       = "/apis/pools.katbox.io/v1alpha1"
	poolVolumes = group + "/poolvolumes"
	// rest continues a list with the objects that were made in the meantime.
	rest = "rest"
)

// kubernetes is an API server. It makes up the PoolVolumes that there are from the beginning, and
// passes everything else on to one that keeps objects.
type kubernetes struct {
	kept  *apitest.Server
	front *httptest.Server
	// arrays have so many volumes each.
	arrays, volumes int
}

func startKubernetes(o options) (*kubernetes, error) {
	k := &kubernetes{kept: apitest.Start(), arrays: o.arrays, volumes: o.volumes}
	to, err := url.Parse(k.kept.URL())
	if err != nil {
		return nil, err
	}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1, // Watches are told at once.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	k.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == poolVolumes && !r.URL.Query().Has("watch") {
			if k.page(w, r) {
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
	return k, nil
}

func (k *kubernetes) close() {
	k.kept.Close()
	k.front.CloseClientConnections()
	k.front.Close()
}

// kubeconfig is the content of a file for the controller.
func (k *kubernetes) kubeconfig() []byte {
	return bytes.ReplaceAll(k.kept.Kubeconfig(), []byte(k.kept.URL()), []byte(k.front.URL))
}

// page writes a page of the PoolVolumes that are made up. It returns false where that list is over: the
// request then asks for those that are kept.
func (k *kubernetes) page(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	from, all := 0, k.arrays*k.volumes
	switch after := query.Get("continue"); {
	case after == "":
	case strings.HasPrefix(after, rest):
		query.Set("continue", strings.TrimPrefix(after, rest))
		r.URL.RawQuery = query.Encode()
		return false
	default:
		from, _ = strconv.Atoi(after)
	}
	if all == 0 {
		return false
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	if limit <= 0 {
		limit = all
	}
	until := min(from+limit, all)
	next := strconv.Itoa(until)
	if until == all {
		next = rest
	}
	w.Header().Set("Content-Type", "application/json")
	body := fmt.Appendf(nil, `{"apiVersion":"pools.katbox.io/v1alpha1","kind":"PoolVolumeList",`+
		`"metadata":{"resourceVersion":"1","continue":%q},"items":[`, next)
	for n := from; n < until; n++ {
		if n > from {
			body = append(body, ',')
		}
		body = k.appendVolume(body, n)
	}
	_, _ = w.Write(append(body, "]}"...))
	return true
}

// poolName and volumeName are the names of what there is from the beginning.
func poolName(array int) string      { return fmt.Sprintf("array-%02d", array) }
func volumePrefix(array int) string  { return fmt.Sprintf("pvc-%08d-0000-4000-8000-0000000", array) }
func volumeName(array, n int) string { return fmt.Sprintf("%s%05d", volumePrefix(array), n) }

// firstGroup is the number before that of the first consistency group of a fake array.
const firstGroup = 0x40

// appendVolume appends the n-th PoolVolume, which is that of a volume on an array.
func (k *kubernetes) appendVolume(to []byte, n int) []byte {
	array, n := n/k.volumes, n%k.volumes
	name, namespace, id := volumeName(array, n), fmt.Sprintf("team-%02d", n%50), n+1
	return fmt.Appendf(to, `{"apiVersion":"pools.katbox.io/v1alpha1","kind":"PoolVolume","metadata":{"name":%q,"uid":"0%s","generation":1,`+
		`"resourceVersion":"1","creationTimestamp":"2026-11-01T10:00:00Z","finalizers":["pools.katbox.io/protection"],`+
		`"labels":{"pools.katbox.io/pool":%q,"pools.katbox.io/namespace":%q}},`+
		`"spec":{"className":"fast","poolName":%q,"size":"1Gi","volumeMode":"Filesystem","protocol":"nfs","management":"Managed",`+
		`"claimRef":{"namespace":%q,"name":"data-%d"}},"status":{"state":"Ready","id":"volume-%08x","groupID":"cg-%08x","capacity":"1Gi",`+
		`"exportPath":"10.0.%d.1:/export/%s","observedGeneration":1}}`,
		name, name[5:], poolName(array), namespace, poolName(array), namespace, n, id, firstGroup+id, array+1, name)
}

// make makes an object.
func (k *kubernetes) make(ctx context.Context, path, object string) error {
	return request(ctx, http.MethodPost, k.front.URL+path, object, nil)
}

// request sends JSON, and reads JSON into what is given.
func request(ctx context.Context, method, url, body string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Access-Key", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
