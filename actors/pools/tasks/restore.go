package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// given returns the volume that was bound to a request before, or that its claim wants to have back now. found is
// false for a claim that wants a new volume.
func (t *task) given(ctx context.Context, n pools.NewVolume, c *claim) (v pools.Volume, found bool, err error) {
	bound, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.FindRequested{Request: n.Name})
	switch {
	case err != nil:
		return v, true, err
	case bound == "" && (c == nil || c.restore == ""):
		return v, false, nil
	}
	if n.Class, err = actors.Ask(ctx, t.Root, t.Single(poolmessages.ClassesName), &poolmessages.NameOfClass{Class: n.Class}); err != nil {
		return v, true, err
	}
	if c == nil {
		c = &claim{ClaimOf: pools.ClaimOf{Claim: n.Claim, Lifespan: rules.NoLifespan}}
	}
	if bound == "" {
		bound, err = t.findFor(ctx, n, c)
	}
	if err == nil {
		v, err = actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.RestoreVolume{
			Routing: messages.RoutingTo(ctx, rules.KindVolume, bound), Name: bound, New: n, For: c.ClaimOf,
		})
	}
	if far, ok := errors.AsType[*onOtherNode](err); ok && c.object != nil {
		return v, true, t.lead(ctx, c, far)
	}
	if err != nil && c.object != nil && !rules.IsOpen(err) {
		t.warn(c.object, "RestoreFailed", err)
	}
	return v, true, err
}

// findFor finds the retained volume that a claim asks for.
func (t *task) findFor(ctx context.Context, n pools.NewVolume, c *claim) (string, error) {
	if n.Source != (pools.Source{}) {
		return "", volume.Invalid("volume_content_source", "is set, and the claim has the annotation "+v1alpha1.RestoreAnnotation+
			" as well: its data can come from one of them")
	}
	if c.NamespaceUID == "" {
		return "", rules.Errorf(volume.ErrUnavailable, "the namespace %s cannot be told from a former one of its name", c.Namespace)
	}
	all, err := actors.Ask(ctx, t.Root, t.Supervisor(), &poolmessages.ListRetained{Namespace: c.Namespace})
	if err != nil {
		return "", err
	}
	return choose(all, n.Class, c)
}

// choose returns the volume that a claim asks for, of those that its namespace's name has. The error says what
// there would be.
func choose(all []poolmessages.RetainedVolume, class string, c *claim) (string, error) {
	var own []poolmessages.RetainedVolume
	elsewhere, given := "", ""
	for _, v := range all {
		if v.NamespaceUID != c.NamespaceUID {
			continue
		}
		wanted := c.restore == v.ClaimUID || c.restore == v.Claim
		switch {
		case v.Given && wanted:
			given = v.To
		case v.Given:
		case (wanted || c.restore == pools.Latest) && v.Class == class:
			return v.Name, nil
		case wanted:
			elsewhere = v.Class
		}
		if !v.Given {
			own = append(own, v)
		}
	}
	wanted := fmt.Sprintf("nothing is retained of a claim %.100q in the namespace %s", c.restore, c.Namespace)
	if c.restore == pools.Latest {
		wanted = fmt.Sprintf("nothing is retained in the namespace %s of the PoolClass %s", c.Namespace, class)
	}
	switch {
	case elsewhere != "":
		return "", volume.Invalid("parameters", fmt.Sprintf("the data of claim %s are of the PoolClass %s, and this claim's volume would "+
			"be of %s; name a StorageClass of %s", c.restore, elsewhere, class, elsewhere))
	case given != "":
		wanted = fmt.Sprintf("the data of claim %s were given to claim %s", c.restore, given)
	}
	return "", rules.Errorf(volume.ErrNotFound, "%s; %s", wanted, offer(own))
}

// offered is how many retained volumes a message tells of.
const offered = 10

// offer says what there would be.
func offer(all []poolmessages.RetainedVolume) string {
	if len(all) == 0 {
		return "there is nothing that could be restored"
	}
	var each []string
	for _, v := range all[:min(len(all), offered)] {
		each = append(each, fmt.Sprintf("%s (UID %s, %s, PoolClass %s, until %s)", v.Claim, v.ClaimUID, sizeText(v.Size), v.Class,
			v.Until.UTC().Format(time.RFC3339)))
	}
	text := "there would be " + strings.Join(each, ", ")
	if more := len(all) - len(each); more > 0 {
		text += fmt.Sprintf(", and %d older ones", more)
	}
	return text
}

// sizeText is a size for people.
func sizeText(bytes int64) string {
	q := rules.Quantity(bytes)
	return q.String()
}

// notAnymore refuses a request for a volume that was deleted, or that was given to another claim.
func notAnymore(v *v1alpha1.PoolVolume) error {
	if v.Status.State == v1alpha1.VolumeRetained {
		return rules.Errorf(volume.ErrConflict,
			"volume %s is retained, because its claim was deleted; a new claim gets it with the annotation %s",
			v.Name, v1alpha1.RestoreAnnotation)
	}
	return rules.Errorf(volume.ErrBusy, "volume %s is being deleted; try again", v.Name)
}
