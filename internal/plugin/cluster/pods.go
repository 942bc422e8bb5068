package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/model/api"
)

// Pod is a pod as far as this program looks at one that it made. Its spec is sent as it is: a client
// with all types of Kubernetes would be several times as large.
type Pod struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   PodMetadata    `json:"metadata"`
	Spec       map[string]any `json:"spec"`
	Status     *PodStatus     `json:"status,omitempty"`
}

// PodMetadata is the part of a pod's metadata that is sent and read.
type PodMetadata struct {
	Name         string            `json:"name,omitempty"`
	GenerateName string            `json:"generateName,omitempty"`
	Namespace    string            `json:"namespace"`
	UID          string            `json:"uid,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// PodStatus says how far a pod is.
type PodStatus struct {
	Phase             string `json:"phase"`
	Reason            string `json:"reason"`
	Message           string `json:"message"`
	ContainerStatuses []struct {
		State struct {
			Waiting *struct {
				Reason  string `json:"reason"`
				Message string `json:"message"`
			} `json:"waiting"`
			Running *struct{} `json:"running"`
		} `json:"state"`
	} `json:"containerStatuses"`
}

// Runs reports whether all containers of the pod run.
func (p Pod) Runs() bool {
	if p.Status == nil || p.Status.Phase != "Running" {
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return len(p.Status.ContainerStatuses) > 0
}

// Ended reports whether the pod will never run again.
func (p Pod) Ended() bool {
	return p.Status != nil && (p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded")
}

// Why says why a pod does not run, as far as its status tells; empty if it does not.
func (p Pod) Why() string {
	if p.Status == nil {
		return ""
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Message != "" {
			return w.Reason + ": " + w.Message
		}
	}
	if p.Status.Message != "" {
		return p.Status.Reason + ": " + p.Status.Message
	}
	return p.Status.Reason
}

func podsPath(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }

// CreatePod makes a pod, and returns it with the name that it got. It is asked for once, as a pod that
// was made and whose answer was lost would be made twice.
func (c *Client) CreatePod(ctx context.Context, p Pod) (Pod, error) {
	if len(validation.IsDNS1123Label(p.Metadata.Namespace)) > 0 {
		return Pod{}, fmt.Errorf("%q is not the name of a namespace", p.Metadata.Namespace)
	}
	made, _, err := get[Pod](ctx, c, object{}, api.Request{Method: http.MethodPost, Path: podsPath(p.Metadata.Namespace), Body: p})
	return made, err
}

// Pod returns a pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (Pod, error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Pod{}, fmt.Errorf("%q is not the name of a pod in the namespace %q", name, namespace)
	}
	p, _, err := get[Pod](ctx, c, object{}, api.Request{Method: http.MethodGet, Path: podsPath(namespace) + "/" + name})
	return p, err
}

// PodWarning returns the last warning among the events of a pod, such as why its volume cannot be
// mounted; empty if there is none.
func (c *Client) PodWarning(ctx context.Context, p Pod) (string, error) {
	type events struct {
		Items []struct {
			Reason        string `json:"reason"`
			Message       string `json:"message"`
			LastTimestamp string `json:"lastTimestamp"`
		} `json:"items"`
	}
	list, _, err := get[events](ctx, c, object{}, api.Request{
		Method: http.MethodGet, Path: "/api/v1/namespaces/" + p.Metadata.Namespace + "/events",
		Query: url.Values{"fieldSelector": {"type=Warning,involvedObject.uid=" + p.Metadata.UID}},
	})
	last, at := "", ""
	for _, e := range list.Items {
		if e.LastTimestamp >= at { // RFC 3339 in UTC sorts as time does
			last, at = e.Reason+": "+e.Message, e.LastTimestamp
		}
	}
	return last, err
}
