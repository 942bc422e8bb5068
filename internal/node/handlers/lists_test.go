package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

func TestPagesOfVolumes(t *testing.T) {
	n := newNode(t)
	for i := range 7 {
		n.add(i)
	}
	var got []string
	q := api.Query{Namespace: "etl", Limit: 3}
	for {
		list, err := n.client.List(t.Context(), q)
		must(t, err)
		for _, v := range list.Items {
			got = append(got, v.ID)
		}
		if q.Continue = list.Continue; q.Continue == "" {
			break
		}
	}
	for i, id := range got {
		if want := fmt.Sprintf("csi-%064x", 6-i); id != want {
			t.Errorf("number %d is %s, want %s", i, id, want)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d volumes, want 7", len(got))
	}
	v, err := n.client.Volume(t.Context(), got[0])
	must(t, err)
	if v.Namespace != "etl" || v.Pod != "job" || v.PodUID != string(testPod) || v.Node != "node-1" || v.Phase != "Retained" ||
		!v.RetainedAt.Equal(time.Unix(2006, 7)) || !v.ExpiresAt.Equal(time.Unix(9000, 0)) || v.Bytes != nil {
		t.Errorf("described as %+v", v)
	}
	must(t, n.client.Purge(t.Context(), got[0], ""))
	_, err = n.client.Volume(t.Context(), got[0])
	wantCode(t, "a removed volume", err, 404)
	wantCode(t, "remove it again", n.client.Purge(t.Context(), got[0], ""), 404)
}

// TestSelection: what the client asks for is what the node is asked for.
func TestSelection(t *testing.T) {
	n := newNode(t)
	var got volume.Selection
	n.volumes.onList = func(_ context.Context, s volume.Selection) (volume.Page, error) { got = s; return volume.Page{}, nil }
	key := volume.Key{Unpublished: time.Unix(-5, 123), ID: "a.b"}
	since := time.Unix(1000, 5)
	q := api.Query{Namespace: "a", Pod: "b", PodUID: "c", Since: since, Continue: api.FormatKey(key), Limit: 9}
	_, err := n.client.List(t.Context(), q)
	must(t, err)
	if got.Namespace != "a" || got.PodName != "b" || got.Pod != "c" || !got.Since.Equal(since) ||
		got.Before.Compare(key) != 0 || got.Limit != 9 {
		t.Errorf("asked for %+v", got)
	}
	if list, err := n.client.List(t.Context(), api.Query{}); err != nil || got != (volume.Selection{Limit: 500}) || list.Items == nil {
		t.Errorf("nothing given: %+v, %+v, %v", got, list, err)
	}
}

// TestEmptyPages: a page of the node that holds nothing is not the end of the list.
func TestEmptyPages(t *testing.T) {
	n := newNode(t)
	pages := 0
	n.volumes.onList = func(context.Context, volume.Selection) (volume.Page, error) {
		if pages++; pages < 3 {
			return volume.Page{Next: volume.Key{ID: "next"}}, nil
		}
		return volume.Page{Volumes: []volume.Description{{Record: volume.Record{ID: "found"}}}}, nil
	}
	if list, err := n.client.List(t.Context(), api.Query{}); err != nil || len(list.Items) != 1 || list.Continue != "" {
		t.Errorf("%+v, %v", list, err)
	}
	// A gateway gets it at once.
	n.h.Gateway, pages = true, 0
	if list, err := n.client.List(t.Context(), api.Query{}); err != nil || len(list.Items) != 0 || list.Continue == "" || pages != 1 {
		t.Errorf("for a gateway: %+v after %d pages, %v", list, pages, err)
	}
}

func TestBadParameters(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	write(t, filepath.Join(dir, "f"), "text")
	for request, cause := range map[string]api.CauseReason{
		"volumes?limit=0": api.BadParameter, "volumes?limit=5001": api.BadParameter, "volumes?limit=x": api.BadParameter,
		"volumes?since=yesterday": api.BadParameter,
		"volumes?before=x":        api.BadContinue, "volumes?before=1.2.": api.BadContinue, "volumes?before=1.2000000000.a": api.BadContinue,
		"volumes?namespce=a": api.BadParameter, "volumes?pod=a&pod=b": api.BadParameter, "V/files?depth=17": api.BadParameter,
		"V/files?limit=10001": api.BadParameter,
		"V/files?stat=yes":    api.BadParameter, "V/bytes?path=f&tailLines=100001": api.BadParameter,
		"V/bytes?path=f&tailline=1":              api.BadParameter,
		"V/bytes?path=f&tailLines=1&tailBytes=1": api.BadParameter, "V/bytes?path=f&offset=1&tailBytes=1": api.BadParameter,
		"V/bytes?path=f&limit=-1":    api.BadParameter,
		"V/bytes?path=f&archive=zip": api.BadParameter, "V/bytes?path=f&exclude=x": api.BadParameter,
		"V/bytes?path=f&archive=tar&offset=1":        api.BadParameter,
		"V/bytes?path=f&offset=-9223372036854775808": api.BadParameter, "V/bytes?path=f&path=g": api.BadParameter,
		"V/bytes?archive=tar" + strings.Repeat("&exclude=x", 65): api.BadParameter,
	} {
		path, query, _ := strings.Cut(request, "?")
		values, err := url.ParseQuery(query)
		must(t, err)
		path = "/v1/" + strings.Replace(path, "V/", "volumes/"+id+"/", 1)
		answer, body := n.raw(http.MethodGet, path, values, nil)
		if answer.StatusCode != 400 || !strings.Contains(body, `"reason":"`+string(cause)+`"`) {
			t.Errorf("%s: code %d, %s; want 400 and %s", request, answer.StatusCode, body, cause)
		}
	}
	for _, request := range []string{
		"GET volumes?namespace=a;pod=b", "GET V/bytes?path=f&tailLines=1;", "GET V/bytes?path=f&tailLines=%1",
		"DELETE V?dryRun=true", "GET V?x=1", "GET usage?x=1", "GET report?x=1",
	} {
		method, path, _ := strings.Cut(request, " ")
		path, query, _ := strings.Cut(path, "?")
		path = "/v1/" + strings.Replace(path, "V", "volumes/"+id, 1)
		about := &url.URL{Scheme: "http", Host: "katbox", Path: path, RawQuery: query}
		answer, err := n.wire.RoundTrip(&http.Request{Method: method, URL: about, Header: http.Header{}})
		must(t, err, answer.Body.Close())
		if answer.StatusCode != 400 {
			t.Errorf("%s: code %d, want 400", request, answer.StatusCode)
		}
	}
	lines := url.Values{"path": {"f"}, "tailLines": {"1"}}
	answer, _ := n.raw(http.MethodGet, "/v1/volumes/"+id+"/bytes", lines, http.Header{"Range": {"bytes=0-1"}})
	if answer.StatusCode != 400 {
		t.Errorf("a range of last lines: code %d", answer.StatusCode)
	}
}

// TestTimesThatJSONCannotHold: one file with such a time must not hide its directory.
func TestTimesThatJSONCannotHold(t *testing.T) {
	for seconds, want := range map[int64]int{
		1 << 62: 9999, 1 << 40: 9999, -1 << 62: 0, -1 << 40: 0, 253402300799: 9999, -62167219200: 0, 0: 1970,
	} {
		e := entry(files.Entry{ModTime: time.Unix(seconds, 0)})
		if _, err := json.Marshal(e); err != nil || e.ModTime.Year() != want {
			t.Errorf("%d seconds: %v, %v; want the year %d", seconds, e.ModTime, err, want)
		}
	}
}

// TestListsAreBounded: in number and in time, and a slot comes back.
func TestListsAreBounded(t *testing.T) {
	n := newNode(t, func(h *handler) { h.list = 50 * time.Millisecond })
	n.volumes.onList = func(ctx context.Context, _ volume.Selection) (volume.Page, error) {
		<-ctx.Done()
		return volume.Page{}, ctx.Err()
	}
	_, err := n.client.List(t.Context(), api.Query{})
	wantCode(t, "a list that takes too long", err, 504)

	n = newNode(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	n.volumes.onList = func(context.Context, volume.Selection) (volume.Page, error) {
		began <- struct{}{}
		<-goOn
		return volume.Page{}, nil
	}
	ended := make(chan error)
	for range mostLists {
		go func() { _, err := n.client.List(context.Background(), api.Query{}); ended <- err }()
		<-began
	}
	_, err = n.client.List(t.Context(), api.Query{})
	wantCode(t, "one list too many", err, 429)
	close(goOn)
	for range mostLists {
		must(t, <-ended)
	}
	eventually(t, "the slots are free", func() bool { return len(n.h.lists) == 0 })
}

// TestLostDuringAList ends the list, with the reason.
func TestLostDuringAList(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	write(t, filepath.Join(dir, "f"), "text")
	n.volumes.pace = func(ctx context.Context) error {
		n.volumes.lose(id, volume.ErrGone)
		<-ctx.Done()
		return ctx.Err()
	}
	_, err := n.client.Files(t.Context(), id, api.FilesQuery{})
	wantCode(t, "a list of what goes", err, 410)
	_, err = n.read(id, api.BytesQuery{Path: "f"})
	wantCode(t, "a file of what has gone", err, 410)
}

// TestLostInTheLastStep: what is erased while it is listed or put into an archive is missing there, so neither ends well, also where
// the last step of the work had begun before the volume was lost.
func TestLostInTheLastStep(t *testing.T) {
	for name, read := range map[string]func(*node, string) error{
		"list": func(n *node, id string) error {
			_, err := n.client.Files(t.Context(), id, api.FilesQuery{})
			return err
		},
		"archive": func(n *node, id string) error {
			s, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Archive: true})
			if err == nil {
				_, err = io.Copy(io.Discard, s)
				s.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			id, dir := n.add(1)
			write(t, filepath.Join(dir, "file"), "content")
			steps := 0
			n.volumes.pace = func(context.Context) error { steps++; return nil }
			must(t, read(n, id))
			last, step := steps, 0
			n.volumes.pace = func(context.Context) error {
				if step++; step == last {
					n.volumes.lose(id, fmt.Errorf("volume: %w", volume.ErrGone))
				}
				return nil
			}
			if err := read(n, id); err == nil {
				t.Error("it ended well")
			}
		})
	}
}

func TestUsage(t *testing.T) {
	n := newNode(t)
	n.volumes.onList = func(_ context.Context, s volume.Selection) (volume.Page, error) {
		// One pod for each volume, and the later ones are larger.
		const pods = 5000
		page, first := volume.Page{}, 0
		if !s.Before.IsZero() {
			_, _ = fmt.Sscanf(string(s.Before.ID), "%d", &first)
		}
		for i := first; i < min(first+1000, pods); i++ {
			page.Volumes = append(page.Volumes, volume.Description{
				Record: volume.Record{ID: "v", Pod: volume.PodUID(fmt.Sprint(i)), Namespace: "etl"}, Size: volume.Size{Bytes: int64(i), Inodes: 2}})
		}
		if first+1000 < pods {
			page.Next = volume.Key{ID: volume.ID(fmt.Sprint(first + 1000))}
		}
		return page, nil
	}
	id, dir := n.add(1)
	write(t, filepath.Join(dir, "f"), strings.Repeat("x", 1<<20))
	n.volumes.all[volume.ID(id)].Record.Phase = volume.Published
	u, err := n.client.Usage(t.Context())
	must(t, err)
	if u.Node != "node-1" || u.TotalBytes != 1000 || u.FreeInodes != 90 || len(u.Pods) != 1000 || u.OtherPods != 4001 {
		t.Errorf("%+v with %d pods and %d others", u.Node, len(u.Pods), u.OtherPods)
	}
	if len(u.Namespaces) != 1 || u.Namespaces[0].Retained != 5000 || u.Namespaces[0].Live != 1 {
		t.Errorf("namespaces %+v, want all pods in one", u.Namespaces)
	}
	if live := u.Pods[0]; live.Live != 1 || live.LiveBytes < 1<<20 || live.Inodes != 2 || live.Pod != "job" || live.PodUID != string(testPod) {
		t.Errorf("the largest is %+v", live)
	}
	if u.Pods[1].RetainedBytes != 4999 || u.Pods[999].RetainedBytes != 4001 {
		t.Errorf("second %+v, last %+v", u.Pods[1], u.Pods[999])
	}
	sum := u.Others.RetainedBytes
	for _, pod := range u.Pods {
		sum += pod.RetainedBytes
	}
	if sum != 4999*5000/2 || u.Others.Retained != 4001 {
		t.Errorf("all retained: %d bytes; others %+v", sum, u.Others)
	}
	n.volumes.onUsage = func(volume.Record) (volume.Size, error) { return volume.Size{}, errors.New("broken disk") }
	n.volumes.onList = func(context.Context, volume.Selection) (volume.Page, error) {
		return volume.Page{Volumes: []volume.Description{{Record: volume.Record{ID: "v", Pod: testPod}}}}, nil
	}
	u, err = n.client.Usage(t.Context())
	if err != nil || len(u.Pods) != 1 || u.Pods[0].Unmeasured != 2 || u.Pods[0].Live != 1 || u.Pods[0].Retained != 1 || u.Others != nil {
		t.Errorf("two that were not measured: %+v, %v", u, err)
	}
}

// TestUsageAgainAtOnce: who has the answer may ask again, whatever the first handler still does.
func TestUsageAgainAtOnce(t *testing.T) {
	n := newNode(t)
	w := &onWrite{httptest.NewRecorder(), func() {
		if _, err := n.client.Usage(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	n.h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/usage", nil))
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// onWrite calls a function before it sends anything.
type onWrite struct {
	*httptest.ResponseRecorder
	call func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.call()
	return w.ResponseRecorder.Write(p)
}

func TestReport(t *testing.T) {
	n := newNode(t)
	r, err := n.client.Report(t.Context())
	must(t, err)
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "all is well\n" {
		t.Errorf("%q, %v", text, err)
	}
	n.h.Report = func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
		return errors.Join(err, os.ErrInvalid)
	}
	r, err = n.client.Report(t.Context())
	must(t, err)
	defer r.Close()
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a report that failed looks complete")
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	for err, code := range map[error]int{
		volume.ErrNotFound: 404, volume.ErrNotRetained: 409, volume.ErrBusy: 409, volume.ErrGone: 410, volume.ErrUnavailable: 503,
		volume.Invalid("volume_id", "is empty"): 400, context.DeadlineExceeded: 504, errors.New("broken"): 500,
		errors.Join(errors.New("one\nmore"), volume.ErrGone): 410,
	} {
		e := errorOf(fmt.Errorf("volume: %w", err))
		if e.Code != code || e.Kind != "Status" || e.Status.Status != "Failure" || strings.ContainsAny(e.Message, "\n") {
			t.Errorf("%v: %+v, want code %d", err, e, code)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := NewHandler(Config{}); err == nil || !strings.Contains(err.Error(), "Config.Volumes") {
		t.Errorf("%v, want the missing field", err)
	}
}
