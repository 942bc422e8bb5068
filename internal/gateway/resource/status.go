package resource

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/katbox/katbox/internal/api"
)

const (
	// awayPause is how long a client should wait for a node that is not connected.
	awayPause = 10 * time.Second
	// busyPause is how long a client should wait if there are too many requests.
	busyPause = time.Second
)

// GroupResource names the resource in errors.
var GroupResource = schema.GroupResource{Group: Group, Resource: Resource}

// Error returns an answer that says why a request for a volume failed. name is empty if the request
// was for none.
func Error(code int, reason metav1.StatusReason, name, format string, values ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, values...),
		Details: &metav1.StatusDetails{Group: Group, Kind: Resource, Name: name},
	}}
}

// after says when the request may be repeated.
func after(e *apierrors.StatusError, pause time.Duration) *apierrors.StatusError {
	e.ErrStatus.Details.RetryAfterSeconds = int32(pause.Seconds())
	return e
}

// BadRequest returns the answer to a request that is wrong. field is the parameter that is wrong.
func BadRequest(cause api.CauseReason, field, format string, values ...any) *apierrors.StatusError {
	e := Error(http.StatusBadRequest, metav1.StatusReasonBadRequest, "", format, values...)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(cause), Message: e.ErrStatus.Message, Field: field}}
	return e
}

// NotFound says that there is no such volume, or none that the client may know of.
func NotFound(name string) *apierrors.StatusError {
	return Error(http.StatusNotFound, metav1.StatusReasonNotFound, name, "%s.%s %q not found: there is no such retained volume, or no longer",
		Resource, Group, name)
}

// Away says that the node of a volume is not connected; since is when it was last, or zero.
func Away(name, node string, since time.Time) *apierrors.StatusError {
	when := "since this gateway began"
	if !since.IsZero() {
		when = "since " + since.UTC().Format(time.RFC3339)
	}
	return after(Error(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, name,
		"node %q, which has the volume, is not connected to the gateway %s; try again when it is back", node, when), awayPause)
}

// Late says that a node did not answer in time.
func Late(name, node string) *apierrors.StatusError {
	return Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, name, "node %q is connected and did not answer in time; try again", node)
}

// TooMany says that there are too many requests, and of what.
func TooMany(format string, values ...any) *apierrors.StatusError {
	return after(Error(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "", format, values...), busyPause)
}

// Expired says that the "continue" of a list is too old.
func Expired(format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusGone, metav1.StatusReasonExpired, "", format, values...)
}
