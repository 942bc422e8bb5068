package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// readBuffer is how many bytes of a stream are read at once.
const readBuffer = 256 << 10

// Client asks a daemon. Its methods may be called from several goroutines. If the daemon answers
// with an error, they return an [*Error].
type Client struct{ caller Caller }

// Dial returns a client of the daemon that serves on a Unix socket. It connects with the first
// request.
func Dial(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return NewClient("the daemon on "+socket, &http.Transport{DialContext: dial, DisableCompression: true, ReadBufferSize: readBuffer})
}

// NewClient returns a client that sends its requests through rt to the daemon, which errors name as
// daemon.
func NewClient(daemon string, rt http.RoundTripper) *Client {
	// The host is not used: there is one daemon behind the socket.
	return &Client{NewCaller(daemon, &url.URL{Scheme: "http", Host: "katbox"}, rt)}
}

// OnBehalf returns a client that tells the daemon who asks: a user's name, and the ID that the
// request has in the API server's audit log.
func (c *Client) OnBehalf(user, auditID string) *Client {
	other := *c
	other.caller.Header = http.Header{HeaderUser: {url.QueryEscape(user)}, HeaderAuditID: {url.QueryEscape(auditID)}}
	return &other
}

// Bounded returns a client that does not trust the daemon: it refuses an answer in JSON that is longer
// than that many bytes, or has more values than the entries that were asked for can have. Streams are
// not bounded.
func (c *Client) Bounded(bytes int64) *Client {
	other := *c
	other.caller.bounds = bounds{bytes: bytes, values: true}
	return &other
}

// Close closes the connections that no request uses.
func (c *Client) Close() { c.caller.Close() }

// List returns a page of the retained volumes, the newest first.
func (c *Client) List(ctx context.Context, q Query) (VolumeList, error) {
	return get[VolumeList](ctx, c, "/v1/volumes", q.values(), cmp.Or(q.Limit, StandardVolumes))
}

// Volume describes a volume in whatever phase it is.
func (c *Client) Volume(ctx context.Context, id string) (Volume, error) {
	return get[Volume](ctx, c, volumePath(id), nil, 1)
}

// Files returns a page of a directory of a retained volume.
func (c *Client) Files(ctx context.Context, id string, q FilesQuery) (FileList, error) {
	return get[FileList](ctx, c, volumePath(id)+"/files", q.Values(), cmp.Or(q.Limit, StandardNames))
}

// Bytes begins to read from a retained volume. The caller closes the stream.
func (c *Client) Bytes(ctx context.Context, id string, q BytesQuery) (*Stream, error) {
	header := http.Header{}
	q.SetHeader(header)
	answer, err := c.exchange(ctx, Request{Method: http.MethodGet, Path: BytesPath(id), Query: q.Values(), Header: header, Stream: true})
	if err != nil {
		return nil, err
	}
	return OpenStream(answer, q), nil
}

// Usage says who occupies the node's disk.
func (c *Client) Usage(ctx context.Context) (Usage, error) {
	return get[Usage](ctx, c, "/v1/usage", nil, mostUsages)
}

// Report returns a text about the daemon, for support. The caller closes it.
func (c *Client) Report(ctx context.Context) (io.ReadCloser, error) {
	answer, err := c.exchange(ctx, Request{Method: http.MethodGet, Path: "/v1/report", Stream: true})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func volumePath(id string) string { return "/v1/volumes/" + url.PathEscape(id) }

// get asks for an answer in JSON, with that many entries at most.
func get[T any](ctx context.Context, c *Client, path string, query url.Values, entries int) (T, error) {
	answer, err := c.exchange(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
	return decoded[T](c, answer, err, path, entries)
}

// decoded reads the answer to a request in JSON, with that many entries at most, and closes it. It
// returns the error of the request if there is one.
func decoded[T any](c *Client, answer *http.Response, err error, path string, entries int) (into T, _ error) {
	if err != nil {
		return into, err
	}
	return Decode[T](&c.caller, answer, path, entries)
}

// exchange sends a request, and returns the answer: with an error if it is one. The caller closes the
// body of an answer without an error.
func (c *Client) exchange(ctx context.Context, r Request) (*http.Response, error) {
	answer, err := c.caller.Exchange(ctx, r)
	if answer == nil {
		return nil, fmt.Errorf("ask %s: %w", c.caller.Server, err)
	}
	return answer, err
}

// BytesPath is where the bytes of a volume's files are; see [Client.Send].
func BytesPath(id string) string { return volumePath(id) + "/bytes" }

// Send sends a request and returns the answer as it is, also one that is an error. The caller closes
// its body.
func (c *Client) Send(ctx context.Context, method, path string, query url.Values, header http.Header) (*http.Response, error) {
	answer, err := c.caller.Send(ctx, Request{Method: method, Path: path, Query: query, Header: header, Stream: true})
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.caller.Server, err)
	}
	return answer, nil
}

// ReadError returns the error in an answer of [Client.Send]. It is an [*Error].
func (c *Client) ReadError(answer *http.Response) error { return c.caller.ReadError(answer) }
