package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/resource"
)

const (
	// maxPatch bounds the body of a patch.
	maxPatch = 16 << 10
	// mergePatch is the only form of a patch that there is.
	mergePatch = "application/merge-patch+json"
)

// patch pins a volume, or takes back what a person has decided.
func (c *call) patch(values url.Values) error {
	if _, wrong := only(values, "dryRun", "fieldManager", "force"); wrong != nil {
		return wrong
	}
	stages, err := dryRun(nil, values)
	if err != nil {
		return err
	}
	if _, wrong := resource.Accept(c.r.Header); wrong != nil {
		return wrong
	}
	body, media, err := c.body(maxPatch)
	if err != nil {
		return err
	}
	if media != mergePatch {
		return c.unsupported("a patch is " + mergePatch + "; with kubectl patch, add --type=merge")
	}
	until, reason, err := c.keepOf(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), removeLimit)
	defer cancel()
	found, node, err := c.reach(ctx)
	if err != nil {
		return err
	}
	if len(stages) == 0 {
		if until != nil {
			_, err = node.Pin(ctx, found.Volume.ID, *until, reason)
		} else {
			_, err = node.Unpin(ctx, found.Volume.ID)
		}
		if err != nil {
			return notRemoved(err)
		}
	}
	return c.get(url.Values{})
}

// keepOf reads a patch: until when the volume is kept, or nil to take that back, and why.
func (c *call) keepOf(body []byte) (until *time.Time, reason string, err error) {
	refuse := func(field, format string, values ...any) (*time.Time, string, error) {
		return nil, "", resource.Invalid(c.what.Name, field, format, values...)
	}
	var patch, spec map[string]json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&patch); err != nil || patch == nil || decoder.More() {
		return nil, "", badParameter("", "the body of the request is not a patch in JSON")
	}
	if field := other(patch, "spec"); field != "" {
		return refuse(field, "%q cannot be changed: a patch of a retained volume has spec.keepUntil and spec.keepReason alone", field)
	}
	if err := json.Unmarshal(patch["spec"], &spec); err != nil || spec == nil {
		return refuse("spec", "the patch changes nothing: it has no spec.keepUntil")
	}
	if field := other(spec, "keepUntil", "keepReason"); field != "" {
		return refuse("spec."+field, "%q cannot be changed: a patch of a retained volume has spec.keepUntil and spec.keepReason alone",
			"spec."+field)
	}
	if spec["keepUntil"] == nil {
		return refuse("spec.keepUntil", "spec.keepUntil is missing; it is a time, or null to take back a pin or a release")
	}
	if err := json.Unmarshal(spec["keepUntil"], &until); err != nil {
		return refuse("spec.keepUntil", "spec.keepUntil=%.100s is not a time of RFC 3339, such as \"2026-11-22T03:04:05Z\"", spec["keepUntil"])
	}
	if why := spec["keepReason"]; why != nil {
		if err := json.Unmarshal(why, &reason); err != nil {
			return refuse("spec.keepReason", "spec.keepReason is not a text")
		}
	}
	switch reason = strings.TrimSpace(reason); {
	case until == nil && reason != "":
		return refuse("spec.keepReason", "spec.keepReason is for a pin: leave it out where spec.keepUntil is null")
	case until != nil && reason == "":
		return refuse("spec.keepReason", "spec.keepReason is missing: a pin needs a reason, so that others know why the volume is still there")
	}
	return until, reason, nil
}

// other returns a field of an object that is none of those that are named; empty if there is none.
func other(object map[string]json.RawMessage, known ...string) string {
	var others []string
	for field := range object {
		if !slices.Contains(known, field) {
			others = append(others, field)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return slices.Min(others)
}
