package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/katbox/katbox/internal/controller/array"
)

// CreateVolume makes a volume, thin.
func (c *client) CreateVolume(ctx context.Context, v array.NewVolume) (array.Volume, error) {
	body := map[string]any{
		// Nodes have to write as root.
		"nfsrootsquash": "NO",
		"crypt":         yes(v.Encrypt),
		"compress":      yes(v.Compress),
		"dedupe":        yes(v.Dedupe),
		"thin":          "YES",
		// No schedule of the array takes snapshots, which would keep the volume from being deleted.
		"attachpolicies": "NO",
	}
	if v.Block {
		delete(body, "nfsrootsquash")
	}
	for option, value := range v.Options {
		body[option] = value
	}
	pool := v.PoolID
	if pool == "" {
		pool = c.poolID
	}
	body["name"], body["capacity"], body["pool"], body["block"] = v.Name, fmt.Sprintf("%dG", v.Size.In(array.GiB)), pool, yes(v.Block)
	q := call{method: http.MethodPost, pattern: "volumes", body: body}
	return c.makeVolume(ctx, v.Name, v.Comment, v.NameFree, q, func(made array.Volume) bool {
		return made.Block == v.Block && made.Size >= v.Size // arrays may round sizes
	})
}

// CloneVolume makes a volume from another one's data. The array may take long for it.
func (c *client) CloneVolume(ctx context.Context, n array.NewClone) (array.Volume, error) {
	body := map[string]any{"name": n.Name}
	if n.SnapshotID != "" {
		// Two clients of the array's maker spell it in two ways.
		body["snapshot"], body["snapshot_id"] = n.SnapshotID, n.SnapshotID
	}
	return c.makeVolume(ctx, n.Name, n.Comment, n.NameFree, call{
		method: http.MethodPost, pattern: "consistency_groups/{id}/clone", id: n.Group, body: body,
	}, func(array.Volume) bool { return true })
}

// makeVolume makes a volume by a request, unless there is one with its name; free says that there was none a
// moment ago. ours reports whether one without a comment looks like what the request makes.
func (c *client) makeVolume(ctx context.Context, name, comment string, free bool, q call, ours func(array.Volume) bool,
) (array.Volume, error) {
	var made array.Volume
	done := func(ctx context.Context) (bool, error) {
		v, err := c.named(ctx, name)
		if errors.Is(err, array.ErrNotFound) {
			return false, nil
		}
		made = v
		return err == nil, err
	}
	is, err := false, error(nil)
	if !free {
		is, err = done(ctx)
	}
	if err == nil && !is {
		err = c.make(ctx, c.creation(name), q, done)
	}
	if err != nil {
		return array.Volume{}, err
	}
	if comment == "" || made.Comment != "" || !ours(made) {
		return made, nil
	}
	err = c.comment(ctx, made.ID, comment)
	if refused := (*Error)(nil); errors.As(err, &refused) && !errors.Is(err, array.ErrUncertain) && !errors.Is(err, array.ErrNotFound) {
		// A volume without a comment is better than none.
		c.log.Info("the array refuses a volume's comment", "name", name, "cause", err.Error())
		return made, nil
	}
	if err != nil {
		return array.Volume{}, err
	}
	made.Comment = comment
	return made, nil
}
