package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeysOfTheCluster: the API server answers with the type that it has for its keys, and to who accepts no such type with 406.
func TestKeysOfTheCluster(t *testing.T) {
	const keys = "application/jwk-set+json"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := map[string]string{"/openid/v1/jwks": keys, "/.well-known/openid-configuration": "application/json"}[r.URL.Path]
		if kind == "" || !strings.Contains(r.Header.Get("Accept"), kind) {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, `{"of":"`+r.URL.Path+`"}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "`+server.URL+`"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := connect(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/openid/v1/jwks", "/.well-known/openid-configuration"} {
		if text, err := c.read(t.Context(), path); err != nil || string(text) != `{"of":"`+path+`"}` {
			t.Errorf("%s: %s, %v", path, text, err)
		}
	}
}
