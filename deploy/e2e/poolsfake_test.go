//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// fake orders something of an array that is not real: a fault, or what a stranger does to it.
func (p *poolsCluster) fake(url, method, path string, body any) {
	p.t.Helper()
	p.fakeInto(nil, url, method, path, body)
}

// fakeInto is fake, and reads the answer.
func (p *poolsCluster) fakeInto(into any, url, method, path string, body any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, url+path, bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, content)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			p.t.Fatalf("%s %s: %v: %s", method, path, err, content)
		}
	}
}
