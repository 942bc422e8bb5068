package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun: as many arrays as asked for, each with its volumes, until the end.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{
			"--arrays", "2", "--tls", "--ca-out", ca, "--volumes", "3", "--token", "secret", "--pools", "10, 20", "--latency", "1us",
		}, w, io.Discard)
		w.Close()
	}()
	var urls []string
	for lines := bufio.NewScanner(r); len(urls) < 2 && lines.Scan(); {
		urls = append(urls, lines.Text())
	}
	if len(urls) != 2 {
		t.Fatalf("URLs %v: %v", urls, <-done)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	for _, url := range urls {
		request, err := http.NewRequestWithContext(ctx, "GET", url+"/api/volumes.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Access-Key", "secret")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || strings.Count(string(body), `"cg_name"`) != 3 {
			t.Errorf("%s: %v, %s", url, err, body)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--arrays", "0"}, {"more"}, {"--pools", "much"}, {"--listen", "nowhere"}, {"--cert", "missing", "--key", "missing"}, {"--pools", "0"},
		{"--data-plane", "disk"}, {"--data-dir", "x"}, {"--data-plane", "kernel"}, {"--data-plane", "kernel", "--data-dir", "x"},
		{"--data-plane", "kernel", "--data-dir", "x", "--portal", "10.0.0.1", "--arrays", "2"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
