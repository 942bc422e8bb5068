package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/testing/apitest"
)

const (
	group = "/apis/pools.katbox.io/v1alpha1"
	// nodeName is the node; otherNode one on which nothing runs.
	nodeName, otherNode = "soak-node", "other-node"
	token               = "token"
	// requestTimeout is the pool's. Katbox looks for twice as long whether a request is carried out whose answer it has not got.
	requestTimeout = time.Minute
)

// kubernetes is the API server.
type kubernetes struct{ *apitest.Server }

// startKubernetes starts it with what an administrator makes.
func startKubernetes(ctx context.Context, array string) (kubernetes, error) {
	k := kubernetes{apitest.Start()}
	var failed error
	for path, object := range map[string]string{
		"/api/v1/namespaces/katbox/secrets": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"array","namespace":"katbox"},` +
			`"data":{"token":"dG9rZW4="}}`,
		"/api/v1/nodes":       `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + nodeName + `"}}`,
		"/api/v1/nodes?other": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + otherNode + `"}}`,
		group + "/poolnodes": `{"apiVersion":"pools.katbox.io/v1alpha1","kind":"PoolNode","metadata":{"name":"` + otherNode + `"},` +
			`"spec":{"addresses":["10.255.0.99"],"iqn":"iqn.2026-11.io.katbox:soak:other"}}`,
		group + "/poolclasses": `{"apiVersion":"pools.katbox.io/v1alpha1","kind":"PoolClass","metadata":{"name":"fast"},` +
			`"spec":{"default":true,"allocator":"Weighted","protocol":"nfs"}}`,
		group + "/pools": fmt.Sprintf(`{"apiVersion":"pools.katbox.io/v1alpha1","kind":"Pool","metadata":{"name":"a"},`+
			`"spec":{"className":"fast","overcommit":"0","vpsa":{"endpoint":%q,"requestTimeout":%q,"credentialsSecretRef":{"name":"array"}}}}`,
			array, requestTimeout),
	} {
		failed = errors.Join(failed, request(ctx, http.MethodPost, k.URL()+path, object, nil))
	}
	return k, failed
}

// object is one of the resources.
type object struct {
	Metadata struct {
		Name       string
		Finalizers []string
	}
	Status struct{ ID, State string }
}

func (k kubernetes) list(ctx context.Context, resource string) ([]object, error) {
	var list struct{ Items []object }
	err := request(ctx, http.MethodGet, k.URL()+group+"/"+resource, "", &list)
	return list.Items, err
}

// requestLimit bounds a request of the soak's own: the array makes one change after the other, and the machine is a slow one.
const requestLimit = startLimit

// request sends JSON, and reads JSON into what is given.
func request(ctx context.Context, method, url, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
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
