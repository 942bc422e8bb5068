package resource

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/katbox/katbox/internal/model/api"
)

const (
	// awayPause is how long a client should wait for a node that is not connected.
	awayPause = 10 * time.Second
	// busyPause is how long a client should wait if there are too many requests.
	busyPause = time.Second
)

// Released begins the message of the answer to a release.
const Released = "released"

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
	return Error(http.StatusNotFound, metav1.StatusReasonNotFound, name,
		"%s.%s %q not found: there is no such retained volume, or no longer",
		Resource, Group, name)
}

// Late says that a node did not answer in time.
func Late(name, format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, name, format, values...)
}

// TooMany says that there are too many requests, and of what.
func TooMany(format string, values ...any) *apierrors.StatusError {
	return after(Error(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "", format, values...), busyPause)
}

// Expired says that the "continue" of a list is too old.
func Expired(format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusGone, metav1.StatusReasonExpired, "", format, values...)
}

// NotAllowed says that no user can do this.
func NotAllowed(format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "", format, values...)
}

// Invalid says that a field of a patch cannot be what it is to be.
func Invalid(name, field, format string, values ...any) *apierrors.StatusError {
	e := Error(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, name, format, values...)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: e.ErrStatus.Message, Field: field}}
	return e
}

// Conflict says that a volume is not in the state that the request is for.
func Conflict(name, format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusConflict, metav1.StatusReasonConflict, name, format, values...)
}

// Unavailable says that the gateway cannot answer at present.
func Unavailable(name, format string, values ...any) *apierrors.StatusError {
	return after(Error(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, name, format, values...), awayPause)
}

// Internal says that something failed that should not.
func Internal(name, format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusInternalServerError, metav1.StatusReasonInternalError, name, format, values...)
}

// maxMessage bounds what a node says about an error, in bytes.
const maxMessage = 4 << 10

// FromNode returns the answer for a request for a volume that a node has refused. What the node says
// is for people, and a file's name may be in it: characters that cannot be printed are replaced.
func FromNode(e *api.Error, name string) *apierrors.StatusError {
	message := printable(e.Message)
	reason, known := map[int]metav1.StatusReason{
		http.StatusBadRequest:                   metav1.StatusReasonBadRequest,
		http.StatusNotFound:                     metav1.StatusReasonNotFound,
		http.StatusConflict:                     metav1.StatusReasonConflict,
		http.StatusGone:                         metav1.StatusReasonGone,
		http.StatusRequestedRangeNotSatisfiable: metav1.StatusReason(api.RangeNotValid),
		http.StatusTooManyRequests:              metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError:          metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable:           metav1.StatusReasonServiceUnavailable,
		http.StatusGatewayTimeout:               metav1.StatusReasonTimeout,
	}[e.Code]
	if !known {
		return Internal(name, "the volume's node answered with the HTTP status %d, which was not expected: %s", e.Code, message)
	}
	s := Error(e.Code, reason, name, "%s", message)
	if cause := e.Cause(); cause != "" {
		s.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: metav1.CauseType(printable(string(cause))), Message: message, Field: printable(e.Details.Causes[0].Field),
		}}
	}
	pause := e.RetryAfter
	switch {
	case pause > 0:
	case e.Code == http.StatusTooManyRequests:
		pause = busyPause
	case e.Code == http.StatusServiceUnavailable:
		pause = awayPause
	}
	return after(s, min(pause, time.Minute))
}

// printable returns a text of limited length without characters that cannot be printed.
func printable(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "\ufffd")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}
