package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

// OutOfReach is a gateway whose replicas are ready, and to which the API server cannot connect.
type OutOfReach struct {
	// Replicas are the addresses of those that are ready, with their ports.
	Replicas []string
	// OnNodes says that these are addresses of nodes, and not of pods.
	OnNodes bool
}

// failedDiscoveryCheck is the reason of an APIService whose server gave no answer, or a wrong one.
const failedDiscoveryCheck = "FailedDiscoveryCheck"

// answers are parts of what the API server says of a server that it has reached.
var answers = []string{"bad status", "x509: ", "tls: "}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// unavailableService returns what the API server says of the gateway that is not available, and which Service it asks;
// nothing if the user may not know.
func (c *Client) unavailableService(ctx context.Context) (condition, service) {
	type apiService struct {
		Spec struct {
			Service service `json:"service"`
		} `json:"spec"`
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	registered, _, err := get[apiService](ctx, c, object{}, api.Request{
		Method: http.MethodGet, Path: "/apis/apiregistration.k8s.io/v1/apiservices/" + APIService,
	})
	if err != nil {
		return condition{}, service{}
	}
	for _, found := range registered.Status.Conditions {
		if found.Type == "Available" && found.Status != "True" {
			return found, registered.Spec.Service
		}
	}
	return condition{}, service{}
}

// outOfReach looks for replicas that are ready where the API server got no answer. Only the kubelet, on the same node, has
// found them ready.
func (c *Client) outOfReach(ctx context.Context, why condition, of service) *OutOfReach {
	if why.Reason != failedDiscoveryCheck {
		return nil
	}
	for _, answer := range answers {
		if strings.Contains(why.Message, answer) {
			return nil
		}
	}
	type slices struct {
		Items []struct {
			Endpoints []struct {
				Addresses  []string `json:"addresses"`
				Conditions struct {
					Ready *bool `json:"ready"`
				} `json:"conditions"`
				TargetRef struct {
					Name string `json:"name"`
				} `json:"targetRef"`
			} `json:"endpoints"`
			Ports []struct {
				Port int `json:"port"`
			} `json:"ports"`
		} `json:"items"`
	}
	list, _, err := get[slices](ctx, c, object{}, api.Request{
		Method: http.MethodGet, Path: "/apis/discovery.k8s.io/v1/namespaces/" + of.Namespace + "/endpointslices",
		Query: url.Values{"labelSelector": {"kubernetes.io/service-name=" + of.Name}},
	})
	if err != nil {
		return nil
	}
	var found OutOfReach
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready != nil && !*ready || len(endpoint.Addresses) == 0 || len(slice.Ports) != 1 {
				continue
			}
			if len(found.Replicas) == 0 {
				if pod, err := c.Pod(ctx, of.Namespace, endpoint.TargetRef.Name); err == nil {
					found.OnNodes = pod.Spec["hostNetwork"] == true
				}
			}
			found.Replicas = append(found.Replicas, net.JoinHostPort(endpoint.Addresses[0], fmt.Sprint(slice.Ports[0].Port)))
		}
	}
	if len(found.Replicas) == 0 {
		return nil
	}
	return &found
}
