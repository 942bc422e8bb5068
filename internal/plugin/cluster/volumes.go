package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// Query selects retained volumes.
type Query struct {
	// Namespace is where they are; empty for all namespaces.
	Namespace string
	// LabelSelector and FieldSelector are Kubernetes' parameters. The fields are metadata.name,
	// spec.podName, spec.podUID, spec.nodeName and status.phase.
	LabelSelector, FieldSelector string
	// Limit is how many a page may hold; 0 is as many as the gateway likes.
	Limit int
	// Continue is that of the page before.
	Continue string
}

func (q Query) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		"labelSelector": q.LabelSelector, "fieldSelector": q.FieldSelector, "continue": q.Continue,
	} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Page is a page of retained volumes, the newest first.
type Page struct {
	Items []resource.RetainedVolume
	// Continue asks for the next page; it is empty on the last one. A page may be shorter than its limit,
	// or empty, and not be the last.
	Continue string
	// Remaining is how many volumes follow; nil if that is not known.
	Remaining *int64
	// Fleet says which nodes the page comes from; nil if the gateway does not say.
	Fleet *resource.Fleet
	// Warnings are those of the API server and the gateway, for people.
	Warnings []string
}

// Incomplete reports whether volumes may be missing, since nodes did not answer.
func (p Page) Incomplete() bool {
	return p.Fleet != nil && len(p.Fleet.Missing)+p.Fleet.MissingMore > 0
}

// List returns a page of retained volumes.
func (c *Client) List(ctx context.Context, q Query) (Page, error) {
	about := object{verb: "list", namespace: q.Namespace}
	if err := about.check(); err != nil {
		return Page{}, err
	}
	list, header, err := get[resource.RetainedVolumeList](ctx, c, about, api.Request{
		Method: http.MethodGet, Path: about.path(), Query: q.values(),
	})
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: list.Items, Continue: list.Continue, Remaining: list.RemainingItemCount, Fleet: list.Fleet}
	// A header that cannot be read warns of nothing.
	warnings, _ := utilnet.ParseWarningHeaders(header["Warning"])
	for _, w := range warnings {
		page.Warnings = append(page.Warnings, w.Text)
	}
	return page, nil
}

// ErrEnough ends a walk through pages.
var ErrEnough = errors.New("enough")

// Pages calls f with each page of a list, until f returns an error. ErrEnough is none for the caller.
func (c *Client) Pages(ctx context.Context, q Query, f func(Page) error) error {
	for {
		page, err := c.List(ctx, q)
		if err != nil {
			return err
		}
		if err := f(page); err != nil {
			if errors.Is(err, ErrEnough) {
				return nil
			}
			return err
		}
		if page.Continue == "" {
			return nil
		}
		if page.Continue == q.Continue {
			return errors.New("the gateway's list does not come to its end")
		}
		q.Continue = page.Continue
	}
}

// Get returns one volume.
func (c *Client) Get(ctx context.Context, namespace, name string) (resource.RetainedVolume, error) {
	about := object{verb: "get", namespace: namespace, name: name}
	if err := about.checkVolume(); err != nil {
		return resource.RetainedVolume{}, err
	}
	v, _, err := get[resource.RetainedVolume](ctx, c, about, api.Request{Method: http.MethodGet, Path: about.path()})
	return v, err
}

// check refuses a namespace that would change the path of a request.
func (o object) check() error {
	if o.namespace != "" && len(validation.IsDNS1123Label(o.namespace)) > 0 {
		return fmt.Errorf("%q is not the name of a namespace", o.namespace)
	}
	return nil
}

// volumeName is wider than a DNS name: the pod's name in that of a volume may be cut at any place.
var volumeName = regexp.MustCompile(`^[a-z0-9][-.a-z0-9]{0,251}[a-z0-9]$`)

// checkVolume refuses what cannot be a volume.
func (o object) checkVolume() error {
	if len(validation.IsDNS1123Label(o.namespace)) > 0 || !volumeName.MatchString(o.name) {
		return fmt.Errorf("%q is not the name of a volume in the namespace %q", o.name, o.namespace)
	}
	return nil
}

// ID returns what Files, Bytes and Explain call a volume.
func ID(namespace, name string) string { return namespace + "/" + name }

// parseID takes an ID apart.
func parseID(id string) (namespace, name string) {
	namespace, name, _ = strings.Cut(id, "/")
	return namespace, name
}
