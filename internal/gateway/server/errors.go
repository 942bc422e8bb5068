package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// nodeError is an error of a request to a node.
type nodeError struct{ err error }

func (e *nodeError) Error() string { return e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

// statusOf returns the answer to a request that failed. name is that of the volume it is about.
func statusOf(err error, name string) *apierrors.StatusError {
	if e := (*apierrors.StatusError)(nil); errors.As(err, &e) {
		return e
	}
	if errors.Is(err, api.ErrOlder) {
		return resource.NotAllowed("%s", oneLine(err))
	}
	if e := (*nodeError)(nil); errors.As(err, &e) {
		return statusOfNode(e, name)
	}
	if e := (*trust.UnauthenticatedError)(nil); errors.As(err, &e) {
		return resource.Error(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "",
			"%s; volumes are reached through the API server of the cluster", e.Reason)
	}
	if e := (*fleet.NotConnectedError)(nil); errors.As(err, &e) {
		return resource.Unavailable(name, "%v; try again when it is back", e)
	}
	switch {
	case errors.Is(err, fleet.ErrArchive):
		return resource.Unavailable(name, "%s; try again in a moment", oneLine(err))
	case errors.Is(err, fleet.ErrContinue):
		return resource.BadRequest(api.BadContinue, "continue", "%v", fleet.ErrContinue)
	case errors.Is(err, fleet.ErrExpired):
		return resource.Expired("%v", fleet.ErrExpired)
	case errors.Is(err, fleet.ErrNotFound):
		return resource.NotFound(name)
	case errors.Is(err, fleet.ErrSilent), errors.Is(err, context.DeadlineExceeded):
		return resource.Late(name, "%s; try again", oneLine(err))
	case errors.Is(err, errStopping):
		return resource.Unavailable(name, "this gateway stops; try again, and another one answers")
	case errors.Is(err, trust.ErrUnavailable):
		return resource.Unavailable(name, "%s; try again in a moment", oneLine(err))
	}
	return resource.Internal(name, "%s; the log of the gateway may say more", oneLine(err))
}

// statusOfNode returns the answer to a request that a node did not answer as it should.
func statusOfNode(e *nodeError, name string) *apierrors.StatusError {
	if said := (*api.Error)(nil); errors.As(e.err, &said) {
		return resource.FromNode(said, name)
	}
	if errors.Is(e.err, context.DeadlineExceeded) {
		return resource.Late(name, "%s: the node is connected and did not answer in time; try again", oneLine(e))
	}
	if errors.Is(e.err, errStopping) {
		return statusOf(errStopping, name)
	}
	return resource.Unavailable(name, "the volume's node did not answer: %s; try again in a moment", oneLine(e))
}

// oneLine is the text of an error, of limited length.
func oneLine(err error) string {
	const most = 1 << 10
	text := volume.OneLine(err)
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
