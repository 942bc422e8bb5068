package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/resource"
)

// maxOptions bounds the body of a request to delete.
const maxOptions = 64 << 10

// remove ends the lifespan of a volume.
func (c *call) remove(values url.Values) error {
	options, err := c.deleteOptions(values)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), removeLimit)
	defer cancel()
	found, node, err := c.reach(ctx)
	if err != nil {
		return err
	}
	v := c.volumeOf(found.Entry)
	if p := options.Preconditions; p != nil {
		switch {
		case p.UID != nil && *p.UID != v.UID:
			return resource.Conflict(v.Name, "the UID in the precondition is %s, and that of the volume %q is %s", *p.UID, v.Name, v.UID)
		case p.ResourceVersion != nil:
			return resource.Conflict(v.Name, "the precondition has the resourceVersion %q, and retained volumes have none", *p.ResourceVersion)
		}
	}
	if len(options.DryRun) == 0 {
		if err := node.Purge(ctx, found.Volume.ID, ""); err != nil {
			return notRemoved(err)
		}
	}
	return c.json(http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: v.Name, Group: resource.Group, Kind: resource.Resource, UID: v.UID},
	})
}

// notRemoved is the error of a volume that a node did not delete. One that is gone already is not
// found.
func notRemoved(err error) error {
	if said := (*api.Error)(nil); errors.As(err, &said) && (said.Code == http.StatusGone || said.Code == http.StatusNotFound) {
		return fleet.ErrNotFound
	}
	return &nodeError{err}
}

// deleteOptions reads the body of a request to delete, and those parameters that may stand for it.
func (c *call) deleteOptions(values url.Values) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	defer c.readSoon()()
	body, err := io.ReadAll(io.LimitReader(c.r.Body, maxOptions+1))
	switch {
	case err != nil:
		return options, badParameter("", "the body of the request cannot be read: %s", oneLine(err))
	case len(body) > maxOptions:
		return options, resource.Error(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, c.what.Name,
			"the body of the request has more than %d bytes", maxOptions)
	case len(body) > 0:
		if media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); media != "application/json" {
			return options, resource.Error(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, c.what.Name,
				"the body has the Content-Type %q (%v), and DeleteOptions are read as application/json alone", c.r.Header.Get("Content-Type"), err)
		}
		if err := json.Unmarshal(body, &options); err != nil || options.Kind != "" && options.Kind != "DeleteOptions" {
			return options, badParameter("", "the body of the request is not DeleteOptions in JSON")
		}
	}
	// Where one of both says so, nothing is deleted.
	options.DryRun = append(options.DryRun, values["dryRun"]...)
	if slices.ContainsFunc(options.DryRun, func(stage string) bool { return stage != metav1.DryRunAll }) {
		return options, badParameter("dryRun", "dryRun=%q is not possible; the only value is All", options.DryRun)
	}
	return options, nil
}
