package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// maxLimit is the largest limit that is a number and not a mistake. The fleet has a smaller one.
const maxLimit = 1 << 31

// list answers with a page of volumes.
func (c *call) list(values url.Values) error {
	form, wrong := resource.Accept(c.r.Header)
	if wrong != nil {
		return wrong
	}
	request, selector, err := c.listRequest(values)
	if err != nil {
		return err
	}
	include, wrong := includeOf(values)
	if wrong != nil {
		return wrong
	}
	release, err := c.s.lists.wait(c.r.Context(), c.who.GetName())
	if err != nil {
		return err
	}
	defer release()
	var page fleet.Page
	if !selector.Empty() {
		began := time.Now()
		look := c.s.Fleet.List
		if selector.Gone() {
			look = c.s.Fleet.Gone
		}
		if page, err = look(c.r.Context(), request); err != nil {
			return err
		}
		c.s.Metrics.Listed(time.Since(began), len(page.Fleet.Missing)+page.Fleet.MissingMore)
	}
	list := c.listOf(page, selector)
	for _, text := range append(page.Warnings, selector.Warning()) {
		c.warn(text)
	}
	switch form {
	case resource.AsTable:
		return c.JSON(http.StatusOK, resource.Table(list.ListMeta, list.Items, selector.Gone(), include, time.Now()))
	case resource.AsMetadata:
		return c.JSON(http.StatusOK, resource.MetadataList(list))
	}
	return c.JSON(http.StatusOK, list)
}

// listRequest reads the parameters of a list.
func (c *call) listRequest(values url.Values) (fleet.Request, resource.Selector, error) {
	request := fleet.Request{Reader: c.reader(), Namespace: c.what.Namespace}
	texts := map[string]string{"labelSelector": "", "fieldSelector": "", "continue": ""}
	for name := range texts {
		text, wrong := once(values, name)
		if wrong != nil {
			return request, resource.Selector{}, wrong
		}
		texts[name] = text
	}
	selector, err := resource.ParseSelector(texts["labelSelector"], texts["fieldSelector"])
	if err != nil {
		return request, selector, err
	}
	limit, wrong := number(values, "limit", maxLimit)
	if wrong != nil {
		return request, selector, wrong
	}
	request.Limit, request.Continue, request.Selectors = int(limit), texts["continue"], selector.String()
	if selector.All() {
		return request, selector, nil
	}
	request.Query, request.Nodes = selector.Narrow(api.Query{}), selector.Nodes
	request.Keep = func(e fleet.Entry) bool {
		v := c.volumeOf(e)
		return selector.Matches(&v)
	}
	return request, selector, nil
}

// listOf returns a page as the list that is sent.
func (c *call) listOf(page fleet.Page, selector resource.Selector) *resource.RetainedVolumeList {
	list := &resource.RetainedVolumeList{
		TypeMeta: metav1.TypeMeta{APIVersion: resource.GroupVersion.String(), Kind: resource.ListKind},
		ListMeta: metav1.ListMeta{Continue: page.Continue, RemainingItemCount: page.Remaining},
		Items:    make([]resource.RetainedVolume, 0, len(page.Entries)),
	}
	for _, e := range page.Entries {
		// The fleet has looked at both already. A mistake there must not show a volume to others.
		if v := c.volumeOf(e); (c.everywhere || !e.Foreign) && selector.Matches(&v) {
			list.Items = append(list.Items, v)
		}
	}
	f := page.Fleet
	list.Fleet = &resource.Fleet{Nodes: f.Nodes, Asked: f.Asked, Answered: f.Answered, MissingMore: f.MissingMore}
	for _, m := range f.Missing {
		node := resource.MissingNode{Node: m.Node, Reason: m.Reason}
		if !m.Since.IsZero() {
			node.Since = &metav1.Time{Time: m.Since}
		}
		list.Fleet.Missing = append(list.Fleet.Missing, node)
	}
	return list
}

// volumeOf returns an entry as a resource.
func (c *call) volumeOf(e fleet.Entry) resource.RetainedVolume {
	if e.Gone != nil {
		return resource.FromGone(*e.Gone, c.s.Namespace, e.Foreign)
	}
	return resource.From(e.Volume, c.s.Namespace, e.Foreign)
}

// includeOf says how much of each volume goes with its row in a table.
func includeOf(values url.Values) (metav1.IncludeObjectPolicy, *apierrors.StatusError) {
	text, wrong := once(values, "includeObject")
	switch include := metav1.IncludeObjectPolicy(text); include {
	case "", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return include, wrong
	}
	return "", badParameter("includeObject", "includeObject=%q is not one of None, Metadata and Object", text)
}

// warn adds a warning for people to the answer.
func (c *call) warn(text string) {
	if text == "" {
		return
	}
	if header, err := utilnet.NewWarningHeader(299, "-", "katbox: "+text); err == nil {
		c.Header().Add("Warning", header)
	}
}

// get answers with one volume.
func (c *call) get(values url.Values) error {
	form, wrong := resource.Accept(c.r.Header)
	if wrong != nil {
		return wrong
	}
	include, wrong := includeOf(values)
	if wrong != nil {
		return wrong
	}
	found, err := c.find(c.r.Context())
	if err != nil {
		return err
	}
	v := c.volumeOf(found.Entry)
	switch form {
	case resource.AsTable:
		return c.JSON(http.StatusOK, resource.Table(metav1.ListMeta{}, []resource.RetainedVolume{v}, false, include, time.Now()))
	case resource.AsMetadata:
		return c.JSON(http.StatusOK, resource.Metadata(&v))
	}
	return c.JSON(http.StatusOK, &v)
}

// find returns the volume of the request.
func (c *call) find(ctx context.Context) (fleet.Found, error) {
	pod, exact, node, _, err := resource.ParseName(c.what.Name)
	if err != nil {
		// No volume has such a name.
		return fleet.Found{}, fleet.ErrNotFound
	}
	if pod == "" {
		// The node goes through all volumes of the namespace, as in a list.
		release, err := c.s.lists.wait(ctx, c.who.GetName())
		if err != nil {
			return fleet.Found{}, err
		}
		defer release()
	}
	found, err := c.s.Fleet.Find(ctx, fleet.Lookup{
		Reader: c.reader(), Namespace: c.what.Namespace, NodeHash: node, Pod: pod, Truncated: !exact, Name: c.what.Name,
		Match: func(v api.Volume) bool { return resource.Name(v) == c.what.Name },
	})
	if away := (*fleet.NotConnectedError)(nil); err != nil {
		switch {
		case errors.Is(err, fleet.ErrNotFound), errors.Is(err, fleet.ErrSilent), errors.Is(err, fleet.ErrArchive),
			errors.Is(err, trust.ErrUnavailable), errors.As(err, &away):
			return fleet.Found{}, err
		}
		return fleet.Found{}, &nodeError{err}
	}
	// As in a list: the fleet has looked at this already.
	if v := c.volumeOf(found.Entry); found.Foreign && !c.everywhere || v.Name != c.what.Name || v.Namespace != c.what.Namespace {
		return fleet.Found{}, fleet.ErrNotFound
	}
	return found, nil
}

// reach returns the volume of the request, and the client of its node.
func (c *call) reach(ctx context.Context) (found fleet.Found, node *api.Client, err error) {
	if found, err = c.find(ctx); err != nil {
		return found, nil, err
	}
	c.node = found.Node.Node()
	if found.Volume.Array != nil {
		return found, nil, c.onArray(found.Volume)
	}
	if found.Volume.Archived != "" && c.s.Archive != nil {
		return found, c.s.Archive.Client(found.Volume).OnBehalf(c.who.GetName(), c.audit), nil
	}
	client, ok := c.s.Client(c.node)
	if !ok {
		return found, nil, &fleet.NotConnectedError{Missing: []fleet.Missing{{Node: c.node, Reason: fleet.NotConnected}}}
	}
	return found, client.OnBehalf(c.who.GetName(), c.audit), nil
}
