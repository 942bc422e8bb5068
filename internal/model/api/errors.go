package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ErrOlder is wrapped by the error of a request that only a daemon of a later version understands.
var ErrOlder = errors.New("upgrade it")

// Error is an answer that says why a request failed.
type Error struct {
	Status
	// RetryAfter is how long to wait before the request is repeated; 0 if the answer does not say.
	RetryAfter time.Duration
}

// Error returns the message of the answer.
func (e *Error) Error() string { return cmp.Or(e.Message, fmt.Sprintf("HTTP status %d", e.Code)) }

// Cause returns why a request is bad; empty if the answer does not say.
func (e *Error) Cause() CauseReason {
	if e.Details == nil || len(e.Details.Causes) == 0 {
		return ""
	}
	return e.Details.Causes[0].Reason
}

// codes are the HTTP codes of the reasons.
var codes = map[Reason]int{
	BadRequest:         http.StatusBadRequest,
	NotFound:           http.StatusNotFound,
	MethodNotAllowed:   http.StatusMethodNotAllowed,
	Conflict:           http.StatusConflict,
	Expired:            http.StatusGone,
	RangeNotValid:      http.StatusRequestedRangeNotSatisfiable,
	TooManyRequests:    http.StatusTooManyRequests,
	InternalError:      http.StatusInternalServerError,
	ServiceUnavailable: http.StatusServiceUnavailable,
	Timeout:            http.StatusGatewayTimeout,
}

// NewError returns an answer that is an error, with the HTTP code of the reason.
func NewError(reason Reason, format string, values ...any) *Error {
	return &Error{Status: Status{
		Kind: "Status", Status: "Failure", Code: codes[reason], Reason: reason, Message: fmt.Sprintf(format, values...),
	}}
}

// WriteError answers with an error.
func WriteError(w http.ResponseWriter, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	w.WriteHeader(e.Code)
	_ = json.NewEncoder(w).Encode(e.Status) // the client is gone
}
