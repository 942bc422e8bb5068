package trust

import "errors"

// ErrUnavailable: the API server did not answer, or has not yet. It becomes a 503.
var ErrUnavailable = errors.New("the API server does not answer the gateway")

// UnauthenticatedError says why a request is not believed. It becomes a 401. The server should
// also close the connection: a caller that has a new certificate then shows it.
type UnauthenticatedError struct {
	// Reason is for the caller and for the log. It contains nothing that the caller does not know.
	Reason string
}

// Error returns the reason.
func (e *UnauthenticatedError) Error() string {
	return "unauthenticated: " + e.Reason
}
