package persistent

import "fmt"

// problem is an error of one of internal/volume's kinds in words of its own: the kinds' texts are about
// directories of pods. It hides the kind of its cause, which may be a final one.
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

// problemf makes an error of a kind.
func problemf(kind error, format string, about ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, about...)}
}

// because makes an error of a kind that has a cause.
func because(kind, cause error, format string, about ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, about...), cause: cause}
}
