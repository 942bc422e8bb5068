package cluster

import (
	"cmp"
	"context"
	"net/http"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

// Files returns a page of a directory of a volume. id is that of [ID].
func (c *Client) Files(ctx context.Context, id string, q api.FilesQuery) (api.FileList, error) {
	about := object{verb: "get", subresource: resource.Files}
	about.namespace, about.name = parseID(id)
	if err := about.checkVolume(); err != nil {
		return api.FileList{}, err
	}
	list, _, err := get[api.FileList](ctx, c, about, api.Request{Method: http.MethodGet, Path: about.path(), Query: q.Values()})
	return list, err
}

// Bytes begins to read from a volume. The caller closes the stream. id is that of [ID].
func (c *Client) Bytes(ctx context.Context, id string, q api.BytesQuery) (*api.Stream, error) {
	about := object{verb: "get", subresource: resource.Log}
	about.namespace, about.name = parseID(id)
	if err := about.checkVolume(); err != nil {
		return nil, err
	}
	q.Path = cmp.Or(q.Path, "/") // the gateway takes no empty one
	// Bytes as they are: compressed ones would be other bytes than a later request goes on with.
	header := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	q.SetHeader(header)
	answer, err := c.ask(ctx, about, api.Request{
		Method: http.MethodGet, Path: about.path(), Query: q.Values(), Header: header, Stream: true,
	})
	if err != nil {
		return nil, err
	}
	return api.OpenStream(answer, q), nil
}
