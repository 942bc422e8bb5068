package asked

import "github.com/katbox/katbox/internal/model/api"

// Bad returns the answer to a request that is wrong. field is the parameter that is wrong.
func Bad(cause api.CauseReason, field, format string, values ...any) *api.Error {
	e := api.NewError(api.BadRequest, format, values...)
	e.Details = &api.Details{Causes: []api.Cause{{Reason: cause, Message: e.Message, Field: field}}}
	return e
}
