package actors

import "fmt"

// problem is an error of a kind in words of its own. It hides the kind of its cause, which may mean something else to
// the caller.
type problem struct {
	kind  error
	text  string
	cause error
}

// Error returns the text, and the cause.
func (p *problem) Error() string {
	if p.cause == nil {
		return p.text
	}
	return p.text + ": " + p.cause.Error()
}

// Unwrap returns the kind.
func (p *problem) Unwrap() error { return p.kind }

// Problemf makes an error of a kind, such as volume.ErrBusy, whose own text does not show.
func Problemf(kind error, format string, about ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, about...)}
}

// Because makes such an error that has a cause.
func Because(kind, cause error, format string, about ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, about...), cause: cause}
}
