package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// admin asks a Katbox over its admin socket.
type admin struct {
	name   string
	client http.Client
}

func newAdmin(name, socket string) *admin {
	var dialer net.Dialer
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	}
	return &admin{name: name, client: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

func (a *admin) close() { a.client.CloseIdleConnections() }

// get asks once, and returns the answer and how long it took to its last byte.
func (a *admin) get(ctx context.Context, path string, query url.Values) (body []byte, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	where := "http://katbox" + path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", a.name, err)
	}
	began := time.Now()
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", a.name, err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	took = time.Since(began)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: GET %s: %w", a.name, where, err)
	}
	return body, took, nil
}

// page is what counts of a page of volumes.
type page struct {
	Items []struct {
		Namespace string `json:"namespace"`
	} `json:"items"`
	Continue string `json:"continue"`
}

// list asks for a page of volumes, where the one with this token goes on.
func (a *admin) list(ctx context.Context, token string, query url.Values) (p page, took time.Duration, err error) {
	if token != "" {
		query.Set("before", token)
	}
	body, took, err := a.get(ctx, "/v1/volumes", query)
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		return p, 0, err
	}
	return p, took, nil
}
