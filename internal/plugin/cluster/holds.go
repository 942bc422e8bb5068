package cluster

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// mergePatch is the only form of a patch that the gateway takes.
const mergePatch = "application/merge-patch+json"

// Pin keeps a volume until then, and returns it as it is now.
func (c *Client) Pin(ctx context.Context, namespace, name string, until time.Time, reason string) (resource.RetainedVolume, error) {
	return c.patch(ctx, namespace, name, map[string]any{"keepUntil": until.UTC().Format(time.RFC3339), "keepReason": reason})
}

// Unpin takes a pin or a release of a volume back, and returns it as it is now.
func (c *Client) Unpin(ctx context.Context, namespace, name string) (resource.RetainedVolume, error) {
	return c.patch(ctx, namespace, name, map[string]any{"keepUntil": nil})
}

func (c *Client) patch(ctx context.Context, namespace, name string, spec map[string]any) (resource.RetainedVolume, error) {
	about := object{verb: "patch", namespace: namespace, name: name}
	if err := about.checkVolume(); err != nil {
		return resource.RetainedVolume{}, err
	}
	v, _, err := get[resource.RetainedVolume](ctx, c, about, api.Request{
		Method: http.MethodPatch, Path: about.path(), Body: map[string]any{"spec": spec},
		Header: http.Header{"Content-Type": {mergePatch}},
	})
	return v, err
}

// Release lets a volume go after the grace of its node. Until then Unpin and Pin take that back.
func (c *Client) Release(ctx context.Context, namespace, name, reason string) error {
	query := url.Values{"gracePeriodSeconds": {"1"}}
	if reason != "" {
		query.Set("reason", reason)
	}
	query.Set("dryRun", metav1.DryRunAll)
	status, err := c.delete(ctx, namespace, name, query)
	if err != nil {
		return err
	}
	// A gateway that takes no notice of the grace would answer in the same way as to a deletion.
	if !strings.HasPrefix(status.Message, resource.Released) {
		return failed("the gateway of this cluster is of an older version, which would delete the volume at once: " +
			"an administrator has to upgrade it")
	}
	query.Del("dryRun")
	_, err = c.delete(ctx, namespace, name, query)
	return err
}

// Purge deletes a volume now.
func (c *Client) Purge(ctx context.Context, namespace, name, reason string) error {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	_, err := c.delete(ctx, namespace, name, query)
	return err
}

func (c *Client) delete(ctx context.Context, namespace, name string, query url.Values) (metav1.Status, error) {
	about := object{verb: "delete", namespace: namespace, name: name}
	if err := about.checkVolume(); err != nil {
		return metav1.Status{}, err
	}
	status, _, err := get[metav1.Status](ctx, c, about, api.Request{Method: http.MethodDelete, Path: about.path(), Query: query})
	return status, err
}
