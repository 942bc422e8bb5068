package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// longest bounds a question. A node answers one that takes longer than ten seconds with [volume.ErrBusy].
const longest = 30 * time.Second

// Client asks one node about its pools. It is a [local.Pools].
type Client struct {
	node string
	over http.RoundTripper
}

var _ local.Pools = (*Client)(nil)

// NewClient returns a client of a node. An error of over that is a [volume.ErrUnavailable] says that nothing was sent.
func NewClient(node string, over http.RoundTripper) *Client { return &Client{node, over} }

// Node is the node's name.
func (c *Client) Node() string { return c.node }

// question is one request.
type question struct {
	method, path string
	query        url.Values
	body         any
	// most bounds the answer.
	most int64
}

func (q question) changes() bool { return q.method != http.MethodGet }

// lost is the error of a question without an answer that can be understood.
func (q question) lost(node string, why error) error {
	kind := volume.ErrUnavailable
	if q.changes() {
		kind = volume.ErrUncertain
	}
	return fmt.Errorf("%w: ask node %s: %s %s: %w", kind, node, q.method, q.path, why)
}

// ask sends a question, once, and reads the answer.
func ask[T any](ctx context.Context, c *Client, q question) (answer T, err error) {
	if err := ctx.Err(); err != nil {
		return answer, fmt.Errorf("ask node %s: %w", c.node, err)
	}
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return answer, err
		}
		if len(text) > mostBody {
			return answer, fmt.Errorf("%w: the request has %d bytes, at most %d are taken", volume.ErrInvalid, len(text), mostBody)
		}
		body = bytes.NewReader(text)
	}
	target := (&url.URL{Scheme: "http", Host: "node", Path: q.path, RawQuery: q.query.Encode()}).String()
	request, err := http.NewRequestWithContext(limited, q.method, target, body)
	if err != nil {
		return answer, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.over.RoundTrip(request)
	switch {
	case errors.Is(err, volume.ErrUnavailable):
		return answer, err
	case err != nil:
		return answer, q.lost(c.node, endOf(limited, err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, q.most+1))
	switch {
	case err != nil:
		return answer, q.lost(c.node, endOf(limited, err))
	case int64(len(text)) > q.most:
		return answer, q.lost(c.node, fmt.Errorf("the answer has more than %d bytes", q.most))
	case response.StatusCode != http.StatusOK:
		return answer, c.failure(q, response.StatusCode, text)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, q.lost(c.node, fmt.Errorf("the answer cannot be read: %s", shorten(err.Error(), mostMessage)))
	}
	return answer, nil
}

// endOf tells the end of the context from other errors.
func endOf(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// failure is the error in an answer.
func (c *Client) failure(q question, status int, text []byte) error {
	var f Failure
	kind := error(nil)
	if json.Unmarshal(text, &f) == nil {
		kind = kindOf(f.Reason)
	}
	if kind == nil {
		return q.lost(c.node, fmt.Errorf("it answered %d without a reason that is known", status))
	}
	return fmt.Errorf("%w: node %s: %s", kind, c.node, shorten(f.Message, mostMessage))
}

// shorten returns a text of the other end as it can be logged.
func shorten(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

func poolPath(pool string, more ...string) string {
	return Path + "/" + pool + "/" + strings.Join(more, "/")
}

// Pools describes all pools of the node.
func (c *Client) Pools(ctx context.Context) ([]local.Pool, error) {
	q := question{method: http.MethodGet, path: Path, most: mostAnswer}
	all, err := ask[list[local.Pool]](ctx, c, q)
	if err != nil {
		return nil, err
	}
	if err := CheckPools(all.Items); err != nil {
		return nil, q.lost(c.node, err)
	}
	return all.Items, nil
}

// pageOf asks for a page, and checks that it is one: that there is an end to it.
func pageOf[T any](
	ctx context.Context, c *Client, pool, what, after string, limit int, check func(T) (name string, err error),
) ([]T, error) {
	if err := checkPool(pool); err != nil {
		return nil, err
	}
	limit = min(limit, MostPage)
	q := question{
		method: http.MethodGet, path: poolPath(pool, what), query: url.Values{"limit": {strconv.Itoa(limit)}}, most: mostPage,
	}
	if after != "" {
		q.query.Set("after", after)
	}
	page, err := ask[list[T]](ctx, c, q)
	if err != nil {
		return nil, err
	}
	if len(page.Items) > limit {
		return nil, q.lost(c.node, fmt.Errorf("a page of %d has %d entries", limit, len(page.Items)))
	}
	for _, one := range page.Items {
		name, err := check(one)
		if err == nil && name <= after {
			err = fmt.Errorf("%s comes after %s", name, after)
		}
		if err != nil {
			return nil, q.lost(c.node, err)
		}
		after = name
	}
	return page.Items, nil
}

// Volumes returns a page of the volumes of a pool.
func (c *Client) Volumes(ctx context.Context, pool, after string, limit int) ([]local.Volume, error) {
	return pageOf(ctx, c, pool, "volumes", after, limit, func(v local.Volume) (string, error) { return v.Name, checkVolume(v, pool, v.Name) })
}

// Snapshots returns a page of the snapshots of a pool.
func (c *Client) Snapshots(ctx context.Context, pool, after string, limit int) ([]local.Snapshot, error) {
	return pageOf(ctx, c, pool, "snapshots", after, limit,
		func(s local.Snapshot) (string, error) { return s.Name, checkSnapshot(s, pool, s.Name) })
}

// one asks about one volume or snapshot, and checks that the answer is about that.
func one[T any](ctx context.Context, c *Client, q question, pool, name string, check func(T, string, string) error) (T, error) {
	var none T
	if err := errors.Join(checkPool(pool), checkName("name", name)); err != nil {
		return none, err
	}
	q.most = mostAnswer
	got, err := ask[T](ctx, c, q)
	if err != nil {
		return none, err
	}
	if err := check(got, pool, name); err != nil {
		return none, q.lost(c.node, err)
	}
	return got, nil
}

// Volume returns a volume.
func (c *Client) Volume(ctx context.Context, pool, name string) (local.Volume, error) {
	return one(ctx, c, question{method: http.MethodGet, path: poolPath(pool, "volumes", name)}, pool, name, checkVolume)
}

// CreateVolume makes a volume, unless there is one with its name already.
func (c *Client) CreateVolume(ctx context.Context, pool string, v local.NewVolume) (local.Volume, error) {
	if err := checkNew(v); err != nil {
		return local.Volume{}, err
	}
	return one(ctx, c, question{method: http.MethodPost, path: poolPath(pool, "volumes"), body: v}, pool, v.Name, checkVolume)
}

// GrowVolume makes a volume at least as large as said.
func (c *Client) GrowVolume(ctx context.Context, pool, name string, to int64) (local.Volume, error) {
	if err := checkSize(to); err != nil {
		return local.Volume{}, err
	}
	q := question{method: http.MethodPut, path: poolPath(pool, "volumes", name, "size"), body: size{to}}
	return one(ctx, c, q, pool, name, checkVolume)
}

// CommentVolume changes a volume's comment.
func (c *Client) CommentVolume(ctx context.Context, pool, name, text string) (local.Volume, error) {
	if err := checkComment(text); err != nil {
		return local.Volume{}, err
	}
	q := question{method: http.MethodPut, path: poolPath(pool, "volumes", name, "comment"), body: comment{text}}
	return one(ctx, c, q, pool, name, checkVolume)
}

// DeleteVolume deletes a volume.
func (c *Client) DeleteVolume(ctx context.Context, pool, name string) error {
	q := question{method: http.MethodDelete, path: poolPath(pool, "volumes", name)}
	_, err := one(ctx, c, q, pool, name, func(struct{}, string, string) error { return nil })
	return err
}

// Snapshot returns a snapshot.
func (c *Client) Snapshot(ctx context.Context, pool, name string) (local.Snapshot, error) {
	return one(ctx, c, question{method: http.MethodGet, path: poolPath(pool, "snapshots", name)}, pool, name, checkSnapshot)
}

// CreateSnapshot takes a snapshot of a volume, unless there is one with its name already.
func (c *Client) CreateSnapshot(ctx context.Context, pool, name, of string) (local.Snapshot, error) {
	if err := checkName("volume", of); err != nil {
		return local.Snapshot{}, err
	}
	q := question{method: http.MethodPost, path: poolPath(pool, "snapshots"), body: snapshot{name, of}}
	return one(ctx, c, q, pool, name, checkSnapshot)
}

// DeleteSnapshot deletes a snapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, pool, name string) error {
	q := question{method: http.MethodDelete, path: poolPath(pool, "snapshots", name)}
	_, err := one(ctx, c, q, pool, name, func(struct{}, string, string) error { return nil })
	return err
}
