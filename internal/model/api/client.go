package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// mostAnswer bounds how much of an answer in JSON the client reads: 10,000 entries with paths of
// 4,096 bytes, each byte encoded in six.
const mostAnswer = 1 << 29

// mostStatus bounds the body of an answer that is an error.
const mostStatus = 64 << 10

// readBuffer is how many bytes of a stream are read at once.
const readBuffer = 256 << 10

// Client asks a daemon. Its methods may be called from several goroutines. If the daemon answers
// with an error, they return an [*Error].
type Client struct {
	// daemon names it in errors.
	daemon string
	// header is sent with each request.
	header http.Header
	// bounds of what an answer in JSON may be; see Bounded.
	bounds bounds
	http   http.Client
}

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
	return &Client{daemon: daemon, bounds: bounds{bytes: mostAnswer}, http: http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// OnBehalf returns a client that tells the daemon who asks: a user's name, and the ID that the
// request has in the API server's audit log.
func (c *Client) OnBehalf(user, auditID string) *Client {
	other := *c
	other.header = http.Header{HeaderUser: {url.QueryEscape(user)}, HeaderAuditID: {url.QueryEscape(auditID)}}
	return &other
}

// Bounded returns a client that does not trust the daemon: it refuses an answer in JSON that is longer
// than that many bytes, or has more values than the entries that were asked for can have. Streams are
// not bounded.
func (c *Client) Bounded(bytes int64) *Client {
	other := *c
	other.bounds = bounds{bytes: bytes, values: true}
	return &other
}

// Close closes the connections that no request uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

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
	answer, err := c.exchange(ctx, http.MethodGet, BytesPath(id), q.Values(), header, nil)
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
	answer, err := c.exchange(ctx, http.MethodGet, "/v1/report", nil, nil, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func volumePath(id string) string { return "/v1/volumes/" + url.PathEscape(id) }

// get asks for an answer in JSON, with that many entries at most.
func get[T any](ctx context.Context, c *Client, path string, query url.Values, entries int) (T, error) {
	answer, err := c.exchange(ctx, http.MethodGet, path, query, nil, nil)
	return decoded[T](c, answer, err, path, entries)
}

// decoded reads the answer to a request in JSON, with that many entries at most, and closes it. It
// returns the error of the request if there is one.
func decoded[T any](c *Client, answer *http.Response, err error, path string, entries int) (T, error) {
	var into T
	if err != nil {
		return into, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(c.bounds.reader(answer.Body, entries)).Decode(&into); err != nil {
		return into, fmt.Errorf("read the answer of %s to %s: %w", c.daemon, path, err)
	}
	return into, nil
}

// exchange sends a request, and returns the answer: with an error if it is one. The caller closes the
// body of an answer without an error.
func (c *Client) exchange(
	ctx context.Context, method, path string, query url.Values, header http.Header, body []byte,
) (*http.Response, error) {
	answer, err := c.send(ctx, method, path, query, header, body)
	if err != nil || answer.StatusCode < http.StatusMultipleChoices {
		return answer, err
	}
	defer answer.Body.Close()
	return answer, ReadError(answer)
}

// BytesPath is where the bytes of a volume's files are; see [Client.Send].
func BytesPath(id string) string { return volumePath(id) + "/bytes" }

// Send sends a request and returns the answer as it is, also one that is an error. The caller closes
// its body.
func (c *Client) Send(ctx context.Context, method, path string, query url.Values, header http.Header) (*http.Response, error) {
	return c.send(ctx, method, path, query, header, nil)
}

func (c *Client) send(
	ctx context.Context, method, path string, query url.Values, header http.Header, body []byte,
) (*http.Response, error) {
	// The host is not used: there is one daemon behind the socket.
	request, err := http.NewRequestWithContext(ctx, method, "http://katbox"+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, c.header)
	maps.Copy(request.Header, header)
	answer, err := c.http.Do(request)
	if err != nil {
		// It repeats the method and the URL, in which the host is made up.
		if about := (*url.Error)(nil); errors.As(err, &about) {
			err = about.Err
		}
		return nil, fmt.Errorf("ask %s: %w", c.daemon, err)
	}
	return answer, nil
}

// ReadError returns the error in an answer of [Client.Send], also where that is not from a node. It is an [*Error].
func ReadError(answer *http.Response) error {
	e := &Error{}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostStatus))
	if err != nil || json.Unmarshal(body, &e.Status) != nil || e.Kind != "Status" {
		e.Status = Status{Kind: "Status", Status: "Failure", Reason: InternalError,
			Message: "the daemon answered with " + answer.Status + ", which says no more; is it a Katbox daemon that serves there?"}
	}
	e.Code = answer.StatusCode
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
