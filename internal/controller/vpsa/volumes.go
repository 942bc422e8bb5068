package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/katbox/katbox/internal/controller/array"
)

// Volume asks for one volume.
func (c *client) Volume(ctx context.Context, id string) (array.Volume, error) {
	var found *volume
	err := c.get(ctx, call{pattern: "volumes/{id}", id: id, fields: map[string]field{"volume": one(&found)}})
	if err != nil {
		return array.Volume{}, c.volumeGone(ctx, id, err)
	}
	if found == nil || found.ID == "" {
		return array.Volume{}, fmt.Errorf("volume %s of the array %s: %w", id, c.endpoint, array.ErrNotFound)
	}
	return found.words(), nil
}

// VolumeNamed asks for the volumes with a name. Where there is none, and one may still come of an
// earlier request, that is ErrUncertain.
func (c *client) VolumeNamed(ctx context.Context, name string) (array.Volume, error) {
	doubtful := inDoubt.about(c.creation(name))
	v, err := c.named(ctx, name)
	if doubtful && errors.Is(err, array.ErrNotFound) {
		return v, fmt.Errorf("%w: an earlier request for volume %q of %s got no answer", array.ErrUncertain, name, c.endpoint)
	}
	return v, err
}

// creation is the doubt about a volume that was asked for.
func (c *client) creation(name string) string { return "make volume " + name + " of " + c.endpoint }

func (c *client) named(ctx context.Context, name string) (array.Volume, error) {
	l := allVolumes
	// The array compares up to the first blank.
	word, _, _ := strings.Cut(name, " ")
	l.q.query = url.Values{"display_name": {word}}
	all, err := l.all(ctx, c)
	if err != nil {
		return array.Volume{}, err
	}
	var found []array.Volume
	for _, v := range all {
		if string(v.Name) == name {
			found = append(found, v.words())
		}
	}
	return only(c, "volume", name, found, func(v array.Volume) string { return v.ID })
}

// only returns the only object with a name.
func only[W any](c *client, kind, name string, found []W, id func(W) string) (W, error) {
	var none W
	switch len(found) {
	case 0:
		return none, fmt.Errorf("%s %q of the array %s: %w", kind, name, c.endpoint, array.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return none, fmt.Errorf("%w: %ss %s and %s of the array %s are both named %q; rename or delete the one that is not wanted",
		array.ErrExists, kind, id(found[0]), id(found[1]), c.endpoint, name)
}

// CommentVolume changes the comment.
func (c *client) CommentVolume(ctx context.Context, id, comment string) error {
	if v, err := c.Volume(ctx, id); err != nil || v.Comment == comment {
		return err
	}
	return c.comment(ctx, id, comment)
}

// comment changes the comment of a volume that has another one.
func (c *client) comment(ctx context.Context, id, comment string) error {
	err := c.change(ctx, call{
		method: http.MethodPost, pattern: "volumes/{id}/update_comment", id: id, body: map[string]any{"new_comment": comment},
	})
	if err == nil {
		return nil
	}
	return c.settle(ctx, err, func(ctx context.Context) (bool, error) {
		v, err := c.Volume(ctx, id)
		return v.Comment == comment, err
	})
}

// DeleteVolume deletes a volume without attachments and snapshots. Where the array has a recycle bin,
// it goes there.
func (c *client) DeleteVolume(ctx context.Context, id string) error {
	var seen array.Volume
	done := func(ctx context.Context) (bool, error) {
		v, err := c.Volume(ctx, id)
		if errors.Is(err, array.ErrNotFound) {
			return true, nil
		}
		seen = v
		return false, err
	}
	if is, err := done(ctx); is || err != nil {
		return err
	}
	hinders := func() error {
		switch {
		case len(seen.Servers) > 0:
			return fmt.Errorf("volume %s (%s): %w: %s", id, seen.Name, array.ErrAttached, strings.Join(seen.Servers, ", "))
		case seen.HasSnapshots:
			return fmt.Errorf("volume %s (%s): %w", id, seen.Name, array.ErrHasSnapshots)
		}
		return nil
	}
	if err := hinders(); err != nil {
		return err
	}
	err := c.change(ctx, call{
		// Forced, the array ignores its warnings. It refuses nevertheless where a server is attached.
		method: http.MethodDelete, pattern: "volumes/{id}", id: id, body: map[string]any{"force": "YES"},
	})
	if err == nil {
		return nil
	}
	err = c.settle(ctx, err, done)
	if refused := (*Error)(nil); errors.As(err, &refused) && !errors.Is(err, array.ErrUncertain) {
		if why := hinders(); why != nil {
			return why
		}
	}
	return err
}
