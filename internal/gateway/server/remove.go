package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// maxOptions bounds the body of a request to delete.
const maxOptions = 64 << 10

// remove deletes a volume: now, or with a grace period that is not 0 after the grace of its node.
func (c *call) remove(values url.Values) error {
	options, err := c.deleteOptions(values)
	if err != nil {
		return err
	}
	reason, wrong := once(values, "reason")
	if wrong != nil {
		return wrong
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), removeLimit)
	defer cancel()
	found, node, err := c.reach(ctx)
	if err != nil {
		return err
	}
	if found.Away != nil {
		return resource.Unavailable(c.what.Name, "nothing was deleted: the volume is in the archive, and may be on its node too, from where "+
			"it would come back: %s; try again when the node answers, or when there is no such Node any more", oneLine(found.Away))
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
	remove, message := func() error { return c.purge(ctx, found.Volume, node, reason) }, ""
	if grace := options.GracePeriodSeconds; grace != nil && *grace > 0 {
		message = resource.Released + ": the volume goes after the grace of its node"
		if until := found.Volume.ArchivedUntil; until != nil {
			message += "; its copy in the archive stays until " + until.UTC().Format(time.RFC3339) + " unless it is deleted, then or now"
		}
		remove = func() error {
			_, err := node.Release(ctx, found.Volume.ID, reason)
			return err
		}
	}
	if len(options.DryRun) == 0 {
		if err := remove(); err != nil {
			return notRemoved(err)
		}
	}
	return c.JSON(http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Message: message,
		Details: &metav1.StatusDetails{Name: v.Name, Group: resource.Group, Kind: resource.Resource, UID: v.UID},
	})
}

// purge deletes a volume now, and its copy in the archive: else that would be shown from now on. The copy goes first, so a bucket
// that is away changes nothing; and once more afterwards, if the node was just writing it.
func (c *call) purge(ctx context.Context, v api.Volume, node *api.Client, reason string) error {
	copied := c.s.Archive != nil && v.Archived == ""
	if copied {
		if err := c.s.Archive.Forget(ctx, v); err != nil {
			return err
		}
	}
	if err := node.Purge(ctx, v.ID, reason); err != nil || !copied {
		return err
	}
	v.ArchivedUntil = nil // that copy is gone, and need not be looked for everywhere
	return c.s.Archive.Forget(ctx, v)
}

// notRemoved is the error of a volume that a node did not delete. One that is gone already is not
// found.
func notRemoved(err error) error {
	if said := (*api.Error)(nil); errors.As(err, &said) && (said.Code == http.StatusGone || said.Code == http.StatusNotFound) {
		return fleet.ErrNotFound
	}
	if errors.Is(err, fleet.ErrArchive) {
		return err
	}
	return &nodeError{err}
}

// deleteOptions reads the body of a request to delete, and those parameters that may stand for it.
func (c *call) deleteOptions(values url.Values) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	body, media, err := c.body(maxOptions)
	if err != nil {
		return options, err
	}
	if len(body) > 0 {
		if media != "application/json" {
			return options, c.unsupported("DeleteOptions are read as application/json alone")
		}
		if err := json.Unmarshal(body, &options); err != nil || options.Kind != "" && options.Kind != "DeleteOptions" {
			return options, badParameter("", "the body of the request is not DeleteOptions in JSON")
		}
	}
	if values.Has("gracePeriodSeconds") && options.GracePeriodSeconds == nil {
		grace, wrong := number(values, "gracePeriodSeconds", math.MaxInt32)
		if wrong != nil {
			return options, wrong
		}
		options.GracePeriodSeconds = &grace
	}
	if grace := options.GracePeriodSeconds; grace != nil && *grace < 0 {
		return options, badParameter("gracePeriodSeconds", "gracePeriodSeconds=%d is negative; 0 deletes the volume now, and any other "+
			"number after the grace of its node", *grace)
	}
	options.DryRun, err = dryRun(options.DryRun, values)
	return options, err
}

// dryRun returns the stages that a request is not to go through. Where the body or the parameter says
// so, nothing is changed.
func dryRun(body []string, values url.Values) ([]string, error) {
	stages := append(body, values["dryRun"]...)
	if slices.ContainsFunc(stages, func(stage string) bool { return stage != metav1.DryRunAll }) {
		return nil, badParameter("dryRun", "dryRun=%q is not possible; the only value is All", stages)
	}
	return stages, nil
}

// body reads the body of a request, and its media type.
func (c *call) body(most int64) (body []byte, media string, err error) {
	defer c.readSoon()()
	body, err = io.ReadAll(io.LimitReader(c.r.Body, most+1))
	switch {
	case err != nil:
		return nil, "", badParameter("", "the body of the request cannot be read: %s", oneLine(err))
	case int64(len(body)) > most:
		return nil, "", resource.Error(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, c.what.Name,
			"the body of the request has more than %d bytes", most)
	}
	media, _, _ = mime.ParseMediaType(c.r.Header.Get("Content-Type")) // empty if there is none
	return body, media, nil
}

// unsupported refuses the media type of a body.
func (c *call) unsupported(advice string) error {
	return resource.Error(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, c.what.Name,
		"the body has the Content-Type %q: %s", c.r.Header.Get("Content-Type"), advice)
}
