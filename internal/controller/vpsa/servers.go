package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/katbox/katbox/internal/controller/array"
)

// EnsureServer makes a server record, or changes one to which nothing is attached.
func (c *client) EnsureServer(ctx context.Context, n array.NewServer) (array.Server, error) {
	var known array.Server
	var exists bool
	same := func(wanted, is string) bool { return wanted == "" || strings.EqualFold(wanted, is) }
	done := func(ctx context.Context) (bool, error) {
		all, err := c.Servers(ctx)
		if err != nil {
			return false, err
		}
		var found []array.Server
		for _, s := range all {
			if s.Name == n.Name {
				found = append(found, s)
			}
		}
		s, err := only(c, "server", n.Name, found, func(s array.Server) string { return s.ID })
		if errors.Is(err, array.ErrNotFound) {
			return false, nil
		}
		known, exists = s, err == nil
		return exists && same(n.IQN, s.IQN) && same(address(n.Address), s.Address), err
	}
	is, err := done(ctx)
	if is || err != nil {
		return known, err
	}
	q := call{method: http.MethodPost, pattern: "servers", body: map[string]any{"display_name": n.Name}}
	if exists {
		attached, err := c.attachedTo(ctx, known.ID)
		if err != nil {
			return array.Server{}, err
		}
		if len(attached) > 0 {
			return array.Server{}, fmt.Errorf("server %s (%s): %w: %s; it cannot get another IQN or address",
				known.ID, n.Name, array.ErrAttached, strings.Join(attached, ", "))
		}
		q = call{method: http.MethodPost, pattern: "servers/{id}/config", id: known.ID, body: map[string]any{}}
	}
	if n.IQN != "" {
		q.body["iqn"] = n.IQN
	}
	if n.Address != "" {
		q.body["iscsi"] = n.Address
	}
	if err := c.settle(ctx, c.change(ctx, q), done); err != nil {
		return array.Server{}, err
	}
	return known, nil
}

// attachedTo returns the IDs of the volumes that are attached to a server record.
func (c *client) attachedTo(ctx context.Context, id string) ([]string, error) {
	l := allVolumes
	l.q = call{pattern: "servers/{id}/volumes", id: id}
	var all []string
	err := l.visit(ctx, c, func(page []volume) error {
		for _, v := range page {
			all = append(all, string(v.ID))
		}
		return nil
	})
	return all, err
}

// DeleteServer deletes a server record without attachments.
func (c *client) DeleteServer(ctx context.Context, id string) error {
	free := func(ctx context.Context) error {
		attached, err := c.attachedTo(ctx, id)
		if err == nil && len(attached) > 0 {
			return fmt.Errorf("server %s: %w: %s", id, array.ErrAttached, strings.Join(attached, ", "))
		}
		return err
	}
	done := func(ctx context.Context) (bool, error) {
		all, err := c.Servers(ctx)
		if err != nil {
			return false, err
		}
		for _, s := range all {
			if s.ID == id {
				return false, nil
			}
		}
		return true, nil
	}
	switch err := free(ctx); {
	case errors.Is(err, array.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	err := c.change(ctx, call{method: http.MethodDelete, pattern: "servers/{id}", id: id})
	if err == nil {
		return nil
	}
	err = c.settle(ctx, err, done)
	if refused := (*Error)(nil); errors.As(err, &refused) && !errors.Is(err, array.ErrUncertain) {
		if why := free(ctx); errors.Is(why, array.ErrAttached) {
			return why
		}
	}
	return err
}
