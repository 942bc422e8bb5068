package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/internal/launch"
)

// TestOptions: a command line that makes no sense is refused before anything happens.
func TestOptions(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for _, args := range [][]string{
		{}, {"--kubeconfig", "a", "--nodes", "0"}, {"--kubeconfig", "a", "--nodes", "x"}, {"--kubeconfig", "a", "more"},
		{"--kubeconfig", "a", "--namespaces", "9", "--volumes", "8"}, {"--kubeconfig", "a", "--nodes", "3", "--silent", "3"},
		{"--kubeconfig", "a", "--acts", "lists,lost"},
	} {
		if _, err := parseOptions(args); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	o, err := parseOptions([]string{"--kubeconfig", "a", "--address", "10.0.0.1", "--nodes", "7"})
	if err != nil || o.nodes != 7 || o.kubeconfig != "a" || o.address != "10.0.0.1" {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestVolumes: made-up volumes are listed as a daemon lists them, page by page, and counted.
func TestVolumes(t *testing.T) {
	v := makeUp(3, part{Volumes: 100, Namespaces: map[string]string{"a": "ua", "b": "ub", "c": "uc"}})
	var ids []volume.ID
	s := volume.Selection{Namespace: "b", Limit: 8}
	for {
		page, err := v.List(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Volumes {
			if d.Record.Namespace != "b" || d.Record.Owner.NamespaceUID != "ub" {
				t.Fatalf("%+v is in the list", d.Record)
			}
			if _, err := volume.ParseID("id", string(d.Record.ID)); err != nil {
				t.Fatal(err)
			}
			if _, err := volume.ParsePodUID("pod", string(d.Record.Pod)); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, d.Record.ID)
		}
		if s.Before = page.Next; page.Next.IsZero() {
			break
		}
	}
	held, _ := v.Holdings(t.Context())
	i := slices.IndexFunc(held, func(h volume.Holding) bool { return h.Namespace == "b" })
	if len(held) != 3 || held[i].Volumes != 33 || len(ids) != 33 {
		t.Errorf("%d are listed, and held are %+v", len(ids), held)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 33 {
		t.Error("a volume is listed twice")
	}
	again := makeUp(3, part{Volumes: 100, Namespaces: map[string]string{"a": "ua", "b": "ub", "c": "uc"}})
	if again.records[0].ID != v.records[0].ID {
		t.Error("another run has other volumes")
	}
}

// TestInOrder: a page that is not as it has to be is found out.
func TestInOrder(t *testing.T) {
	of := func(text string) (p page) {
		var items []string
		for item := range strings.FieldsSeq(text) {
			name, second, _ := strings.Cut(item, "@")
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","creationTimestamp":"2026-01-01T00:00:%sZ"}}`, name, second))

		}
		if err := json.Unmarshal([]byte(`{"items":[`+strings.Join(items, ",")+`]}`), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for text, ok := range map[string]bool{"a@09 b@08 c@08": true, "a@09 b@08": false, "a@09 b@08 b@07": false, "a@09 b@08 c@10": false} {
		if err := inOrder(of(text), 3); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	s := &story{o: options{nodes: 2}}
	var p page
	p.Fleet.Nodes, p.Fleet.Asked, p.Fleet.Answered = 2, 2, 2
	if err := s.complete(p); err != nil {
		t.Error(err)
	}
	p.Fleet.Answered = 1
	if err := s.complete(p); err == nil {
		t.Error("a page that lacks a node is complete")
	}
}

// TestServer: objects are made with the identity of the kubeconfig, once, and removed. A cluster that
// has a gateway is left alone.
func TestServer(t *testing.T) {
	objects := map[string]string{}
	foreign := false
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		var o struct {
			Metadata struct{ Name string }
		}
		_ = json.NewDecoder(r.Body).Decode(&o)
		path := r.URL.Path + "/" + o.Metadata.Name
		switch {
		case r.Method == http.MethodGet && r.URL.Path == apiService && foreign:
			fmt.Fprint(w, `{"metadata":{"labels":{}}}`)
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/token"):
			fmt.Fprint(w, `{"status":{"token":"t"}}`)
		case r.Method == http.MethodPost && objects[path] != "":
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"message":"there already"}`)
		case r.Method == http.MethodPost:
			objects[path] = "uid-" + o.Metadata.Name
			fmt.Fprintf(w, `{"metadata":{"name":%q,"uid":%q}}`, o.Metadata.Name, objects[path])
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.RawQuery, "limit=1"):
			fmt.Fprint(w, `{"items":[]}`)
		case r.Method == http.MethodGet && objects[r.URL.Path] != "":
			fmt.Fprintf(w, `{"metadata":{"name":%q,"uid":%q}}`, filepath.Base(r.URL.Path), objects[r.URL.Path])
		case r.Method == http.MethodDelete && r.URL.RawQuery != "":
			for path := range objects {
				if filepath.Dir(path) == r.URL.Path {
					delete(objects, path)
				}
			}
		case r.Method == http.MethodDelete && objects[r.URL.Path] != "":
			delete(objects, r.URL.Path)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message":"not there"}`)
		}
	}))
	defer api.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := errors.Join(writePEM(ca, "CERTIFICATE", api.Certificate().Raw), os.WriteFile(file, []byte(`
current-context: b
contexts: [{name: a, context: {cluster: x, user: x}}, {name: b, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "`+api.URL+`", certificate-authority: "`+ca+`"}}]
users: [{name: u, user: {token: secret}}]
`), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := connect(file)
	if err != nil {
		t.Fatal(err)
	}
	o := options{address: "10.0.0.1", nodes: 3, namespaces: 2, parallel: 1, replicas: 2}
	if err := s.free(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		uids, err := s.prepare(t.Context(), o, []int{10250, 10251})
		if err != nil || len(uids) != 2 || uids[namespaceName(1)] != "uid-"+namespaceName(1) {
			t.Fatalf("namespaces are %v, %v", uids, err)
		}
		tokens, err := s.tokens(t.Context(), o)
		if err != nil || !slices.Equal(tokens, []string{"t", "t", "t"}) {
			t.Fatalf("tokens are %v, %v", tokens, err)
		}
	}
	if len(objects) != 16 {
		t.Errorf("made are %d objects: %v", len(objects), objects)
	}
	if err := s.remove(t.Context(), o); err != nil {
		t.Error(err)
	}
	for path := range objects {
		if !strings.HasPrefix(path, "/api/v1/namespaces/"+own+"/") && !strings.Contains(path, "/"+own+"/") {
			t.Errorf("%s is left", path)
		}
	}
	foreign = true
	if err := s.free(t.Context()); err == nil {
		t.Error("a cluster with a gateway is taken")
	}
}

// TestGateway: the gateway's certificate is for the address of the nodes, and its numbers are read.
func TestGateway(t *testing.T) {
	all, err := newGateways(options{address: "127.0.0.1", replicas: 2}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := all[0]
	if at := all.addresses(); at != g.at(g.nodesPort)+","+g.at(all[1].nodesPort) || g.nodesPort == all[1].nodesPort {
		t.Errorf("the nodes find the replicas at %s", at)
	}
	for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(g.dir, name)); err != nil {
			t.Error(err)
		}
	}
	status := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# HELP x\nkatbox_gateway_nodes_connected 17\nkatbox_gateway_nodes_connected_here 9\nkatbox_gateway_nodes_expected 18\n"+
			`katbox_gateway_token_reviews_total{outcome="accepted"} 3`+"\n"+`katbox_gateway_token_reviews_total{outcome="failed"} 4`+"\n"+
			`katbox_gateway_tokens_read_total 5`+"\n")
	}))
	defer status.Close()
	if _, err := fmt.Sscanf(status.URL, "http://127.0.0.1:%d", &g.statusPort); err != nil {
		t.Fatal(err)
	}
	if c, err := g.counts(context.Background()); err != nil || c != (counts{17, 9, 7, 5}) {
		t.Errorf("counts are %+v, %v", c, err)
	}
	all[1].statusPort = g.statusPort
	if c, err := all.counts(context.Background()); err != nil || c != (counts{17, 18, 14, 10}) {
		t.Errorf("counts of both are %+v, %v", c, err)
	}
}

// TestSearchFiles: every tenth volume has what is searched for.
func TestSearchFiles(t *testing.T) {
	dir := t.TempDir()
	if err := writeFiles(dir); err != nil {
		t.Fatal(err)
	}
	v := makeUp(3, part{Volumes: 20, Namespaces: map[string]string{"a": "ua"}, Files: dir})
	for i, r := range v.records {
		reading, err := v.Read(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		path, err := paths.ParseRef("out/log.txt")
		if err != nil {
			t.Fatal(err)
		}
		f, err := reading.Tree.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil || strings.Contains(string(text), wanted) != (i%failedEvery == 0) {
			t.Errorf("volume %d: %v, %d bytes", i, err, len(text))
		}
		f.Close()
		reading.Close()
	}
	if _, err := v.Read(t.Context(), "csi-none"); err == nil {
		t.Error("a volume that is none is read")
	}
}
