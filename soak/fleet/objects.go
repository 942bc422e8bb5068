package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
)

const (
	// own is the namespace of the gateway and of the daemons' pods, and the label of all that fleet makes.
	own = "katbox-fleet"
	// apiService is what makes the API server ask the gateway.
	apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"
	apiService  = apiServices + "/v1alpha1.katbox.io"
)

// object is an object of the API server.
type object = map[string]any

func metadata(name string, more ...string) object {
	labels := object{own: "yes"}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return object{"name": name, "labels": labels}
}

// identity is what the API server has given to an object.
type identity struct {
	Metadata struct{ Name, UID string } `json:"metadata"`
}

// make makes an object. One that is there already stays as it is.
func (s *server) make(ctx context.Context, collection string, o object) (made identity, err error) {
	if err = s.do(ctx, http.MethodPost, collection, o, &made); is(err, http.StatusConflict) {
		name, _ := o["metadata"].(object)["name"].(string)
		err = s.do(ctx, http.MethodGet, collection+"/"+name, nil, &made)
	}
	return made, err
}

// free returns an error if the cluster has a gateway that is not fleet's.
func (s *server) free(ctx context.Context) error {
	var there struct {
		Metadata struct{ Labels map[string]string }
	}
	err := s.do(ctx, http.MethodGet, apiService, nil, &there)
	switch {
	case is(err, http.StatusNotFound):
		return nil
	case err != nil:
		return err
	case there.Metadata.Labels[own] == "":
		return errors.New("the cluster has an APIService v1alpha1.katbox.io already; fleet needs a cluster without a gateway")
	}
	return nil
}

// prepare makes all but the nodes. It returns the UIDs of the namespaces of the volumes.
func (s *server) prepare(ctx context.Context, o options, apiPorts []int) (uids map[string]string, err error) {
	base := "/api/v1/namespaces/" + own
	for _, one := range []struct {
		collection string
		object     object
	}{
		{"/api/v1/namespaces", object{"metadata": metadata(own)}},
		{base + "/serviceaccounts", object{"metadata": metadata("katbox")}},
		{base + "/secrets", object{"metadata": metadata("katbox-gateway")}},
		{base + "/configmaps", object{"metadata": metadata("katbox-gateway-ca")}},
		{base + "/services", object{"metadata": metadata("katbox-gateway"), "spec": object{
			"ports": []object{{"name": "api", "port": 443, "targetPort": apiPorts[0]}},
		}}},
	} {
		if _, err := s.make(ctx, one.collection, one.object); err != nil {
			return nil, err
		}
	}
	// The ports differ from run to run.
	if err := s.gone(ctx, apiService); err != nil {
		return nil, err
	}
	for i := range mostReplicas {
		if err := s.leave(ctx, i); err != nil {
			return nil, err
		}
	}
	for i, port := range apiPorts {
		if err := s.join(ctx, o, i, port); err != nil {
			return nil, err
		}
	}
	if _, err := s.make(ctx, apiServices, object{
		"metadata": metadata("v1alpha1.katbox.io"), "spec": object{
			"group": "katbox.io", "version": "v1alpha1", "groupPriorityMinimum": 100, "versionPriority": 100,
			"service": object{"name": "katbox-gateway", "namespace": own, "port": 443},
		},
	}); err != nil {
		return nil, err
	}
	uids = map[string]string{}
	for i := range o.namespaces {
		made, err := s.make(ctx, "/api/v1/namespaces", object{"metadata": metadata(namespaceName(i))})
		if err != nil {
			return nil, err
		}
		uids[made.Metadata.Name] = made.Metadata.UID
	}
	return uids, nil
}

// endpoints are where the API server finds the replicas: each has a slice, since each has a port.
const endpoints = "/apis/discovery.k8s.io/v1/namespaces/" + own + "/endpointslices"

// join lets the API server ask a replica.
func (s *server) join(ctx context.Context, o options, replica, apiPort int) error {
	_, err := s.make(ctx, endpoints, object{
		"metadata": metadata(fmt.Sprint("katbox-gateway-", replica), "kubernetes.io/service-name", "katbox-gateway"), "addressType": "IPv4",
		"ports":     []object{{"name": "api", "port": apiPort, "protocol": "TCP"}},
		"endpoints": []object{{"addresses": []string{o.address}, "conditions": object{"ready": true}}},
	})
	return err
}

// leave keeps the API server from asking a replica.
func (s *server) leave(ctx context.Context, replica int) error {
	return s.gone(ctx, fmt.Sprint(endpoints, "/katbox-gateway-", replica))
}

// gone deletes an object that may be there.
func (s *server) gone(ctx context.Context, path string) error {
	if err := s.do(ctx, http.MethodDelete, path, nil, nil); err != nil && !is(err, http.StatusNotFound) {
		return err
	}
	return nil
}

func namespaceName(i int) string { return fmt.Sprintf("fleet-team-%03d", i) }
func nodeName(i int) string      { return fmt.Sprintf("fleet-n%05d", i) }

// node makes a Node and its daemon's pod, and returns a token of that.
func (s *server) node(ctx context.Context, name string) (token string, err error) {
	if _, err := s.make(ctx, "/api/v1/nodes", object{
		// Nothing is to run there.
		"metadata": metadata(name), "spec": object{"unschedulable": true},
	}); err != nil {
		return "", err
	}
	base := "/api/v1/namespaces/" + own
	pod, err := s.make(ctx, base+"/pods", object{
		"metadata": metadata("katbox-"+name, "app.kubernetes.io/name", "katbox"), "spec": object{
			"nodeName": name, "serviceAccountName": "katbox", "automountServiceAccountToken": false,
			"tolerations": []object{{"operator": "Exists"}},
			"containers":  []object{{"name": "katbox", "image": "none"}},
		},
	})
	if err != nil {
		return "", err
	}
	var answer struct{ Status struct{ Token string } }
	err = s.do(ctx, http.MethodPost, base+"/serviceaccounts/katbox/token", object{"spec": object{
		"audiences": []string{"katbox-gateway"}, "expirationSeconds": 7200,
		"boundObjectRef": object{"apiVersion": "v1", "kind": "Pod", "name": pod.Metadata.Name, "uid": pod.Metadata.UID},
	}}, &answer)
	return answer.Status.Token, err
}

// tokens makes all nodes, many at a time, and returns their tokens.
func (s *server) tokens(ctx context.Context, o options) ([]string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tokens := make([]string, o.nodes)
	slots := make(chan struct{}, o.parallel)
	var all sync.WaitGroup
	for i := range tokens {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			var err error
			if tokens[i], err = s.node(ctx, nodeName(i)); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return tokens, context.Cause(ctx)
}

// remove removes all that fleet made: the APIService first, else no namespace would go.
func (s *server) remove(ctx context.Context, o options) error {
	selector := "labelSelector=" + url.QueryEscape(own)
	err := s.gone(ctx, apiService)
	// No kubelet would end the pods.
	for _, all := range []string{"/api/v1/namespaces/" + own + "/pods?gracePeriodSeconds=0&" + selector, "/api/v1/nodes?" + selector} {
		err = errors.Join(err, s.removeAll(ctx, all))
	}
	for i := range o.namespaces {
		err = errors.Join(err, s.gone(ctx, "/api/v1/namespaces/"+namespaceName(i)))
	}
	return errors.Join(err, s.gone(ctx, "/api/v1/namespaces/"+own))
}

// removeAll removes all objects of a collection, a few hundred at a time.
func (s *server) removeAll(ctx context.Context, collection string) error {
	for {
		var left struct{ Items []struct{} }
		if err := s.do(ctx, http.MethodDelete, collection+"&limit=500", nil, nil); err != nil {
			return err
		}
		if err := s.do(ctx, http.MethodGet, collection+"&limit=1", nil, &left); err != nil || len(left.Items) == 0 {
			return err
		}
		if err := retry.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
