package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// call is a request and the answer to it.
type call struct {
	api.Answer
	r *http.Request
	s *Server
	// audit is the ID that the request has in the API server's audit log.
	audit string
	what  target
	who   user.Info
	// everywhere says that the user may do the same in all namespaces.
	everywhere bool
	// node is the node that was asked; empty if none was.
	node string

	// stream says that the answer is a stream, which began with byte from of its file.
	stream bool
	from   int64
}

// errStalled: a stream did not move.
var errStalled = errors.New("the stream did not move on for too long")

// answer answers the request. It returns an error if there is no complete answer yet.
func (c *call) answer() error {
	switch c.what.kind {
	case health:
		return c.Whole(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	case ready:
		if err := c.s.Ready(); err != nil {
			return c.Whole(http.StatusServiceUnavailable, "text/plain; charset=utf-8", []byte(volume.OneLine(err)+"\n"))
		}
		return c.Whole(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	}
	who, err := c.s.Authenticator.Authenticate(c.r)
	if err != nil {
		return err
	}
	c.who = who
	if c.s.Version != "" {
		c.Header().Set(api.HeaderVersion, c.s.Version)
	}
	switch c.what.kind {
	case groups:
		return resource.NotAcceptable("the groups of the cluster are listed by the API server; this gateway has %s", resource.GroupPath)
	case document:
		return c.document()
	case volumes:
		return c.volumes()
	}
	return resource.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "",
		"there is nothing at %q; volumes are at %s/namespaces/NAMESPACE/%s",
		c.r.URL.Path, resource.VersionPath, resource.Resource)
}

// document answers with discovery, or with OpenAPI.
func (c *call) document() error {
	if c.r.Method != http.MethodGet {
		return resource.NotAllowed("%s is not possible for %q", c.r.Method, c.r.URL.Path)
	}
	if c.r.URL.Path == resource.SchemaPath {
		if _, err := resource.Accept(c.r.Header); err != nil {
			return err
		}
	}
	// Discovery is JSON, whatever a client accepts: where it fails, namespaces cannot be deleted.
	return c.Whole(http.StatusOK, "application/json", c.s.documents[c.r.URL.Path])
}

// volumes answers a request for volumes, after asking whether the user may.
func (c *call) volumes() error {
	if c.what.refused != "" {
		return resource.NotAllowed("%s", c.what.refused)
	}
	what := c.what.Attributes
	values, malformed := query(c.r)
	if malformed != nil {
		return malformed
	}
	if c.what.Verb == "list" {
		// Who may list one volume alone may ask for a list of it, as the API server reads it.
		what.Name = resource.OnlyName(values.Get("fieldSelector"))
	}
	allowed, reason, err := c.s.Authorizer.Allowed(c.r.Context(), c.who, what)
	if err != nil {
		return err
	}
	if !allowed {
		return c.forbidden(reason)
	}
	if c.everywhere = what.Namespace == ""; !c.everywhere {
		what.Namespace = ""
		if c.everywhere, _, err = c.s.Authorizer.Allowed(c.r.Context(), c.who, what); err != nil {
			return err
		}
	}
	switch c.what.Verb {
	case "delete":
		return c.remove(values)
	case "patch":
		return c.patch(values)
	}
	if err := c.noBody(); err != nil {
		return err
	}
	switch {
	case c.what.Verb == "list":
		return c.list(values)
	case c.what.Subresource == resource.Files:
		return c.files(values)
	case c.what.Subresource == resource.Log && (values.Has("grep") || c.what.Name == resource.AnyVolume):
		return c.grep(values)
	case c.what.Subresource == resource.Log:
		return c.log(values)
	}
	return c.get(values)
}

// forbidden says what the user may not do.
func (c *call) forbidden(reason string) error {
	where := "in all namespaces"
	if c.what.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", c.what.Namespace)
	}
	if reason != "" {
		reason = ": " + reason
	}
	return resource.Error(http.StatusForbidden, metav1.StatusReasonForbidden, c.what.Name,
		"%s %q is forbidden: user %q cannot %s resource %q in API group %q %s%s", resource.GroupResource, c.what.Name,
		c.who.GetName(), c.what.Verb, c.what.resourceName(), resource.Group, where, reason)
}

// noBody refuses a request with a body.
func (c *call) noBody() error {
	if c.r.ContentLength == 0 {
		return nil
	}
	defer c.readSoon()()
	if n, _ := io.ReadFull(c.r.Body, make([]byte, 1)); n > 0 {
		return badParameter("", "the request has a body, and none is expected")
	}
	return nil
}

// readSoon bounds the time in which the body of the request is read, until end is called.
func (c *call) readSoon() (end func()) {
	_ = c.Control.SetReadDeadline(time.Now().Add(headerLimit))
	return func() { _ = c.Control.SetReadDeadline(time.Time{}) }
}

// reader is who asks, for the fleet.
func (c *call) reader() fleet.Reader {
	return fleet.Reader{User: c.who.GetName(), AuditID: c.audit, Everywhere: c.everywhere}
}

// end ends the answer to a request that was handled with an error or nil. It counts and logs the
// request.
func (c *call) end(err error) {
	begun := c.Code != 0
	if err != nil && !begun {
		c.fail(err)
	}
	c.s.Metrics.Requested(verbOf(c.what), c.what.resourceName(), c.Code)
	c.logLine(err)
	if err != nil && begun || c.Code == statusLeft {
		// The only way to tell the client that the answer is not complete. One that has only closed its
		// side would get 200 with an empty body.
		panic(http.ErrAbortHandler)
	}
}

// verbOf is the verb in metrics.
func verbOf(t target) string {
	switch t.Verb {
	case "get", "list", "delete", "patch", "watch":
		return t.Verb
	}
	return "other"
}

// fail sends an error.
func (c *call) fail(err error) {
	if c.r.Context().Err() != nil {
		c.Code = statusLeft
		return
	}
	e := statusOf(err, c.what.Name)
	pause := time.Duration(0)
	if details := e.ErrStatus.Details; details != nil {
		pause = time.Duration(details.RetryAfterSeconds) * time.Second
	}
	switch e.ErrStatus.Code {
	case http.StatusUnauthorized:
		// A client that has a new certificate shows it on a new connection.
		c.Header().Set("Connection", "close")
	case http.StatusMethodNotAllowed:
		c.Header().Set("Allow", "GET")
	}
	c.Refuse(int(e.ErrStatus.Code), pause, e.ErrStatus)
}

// statusLeft is the code in the log for a client that left before there was an answer, as nginx
// writes it.
const statusLeft = 499

// logLine writes the one line of a request. Requests that are not about volumes have theirs at debug
// level: the API server makes many.
func (c *call) logLine(err error) {
	log := c.s.Log
	if c.what.kind != volumes {
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	name := ""
	if c.who != nil {
		name = c.who.GetName()
	}
	fields := []any{
		logkeys.AuditID, c.audit, logkeys.User, name, "verb", c.what.Verb, logkeys.Namespace, c.what.Namespace, "name", c.what.Name,
		"subresource", c.what.Subresource, logkeys.Node, c.node, "path", strconv.Quote(c.r.URL.Query().Get("path")), "code", c.Code,
		"bytes", c.Sent,
		"duration", time.Since(c.Began).String(),
	}
	if c.what.kind != volumes {
		fields = append(fields, "url", strconv.Quote(c.r.URL.Path))
	}
	if err != nil {
		fields = append(fields, logkeys.Cause, volume.OneLine(err))
	}
	if err != nil && c.stream {
		fields = append(fields, "next", fmt.Sprintf("again with offset %d", c.from+c.Sent))
	}
	log.Info("request", fields...)
}
