package vpsa

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/katbox/katbox/internal/controller/array"
)

// Error is a request that the array refused. It wraps the error of package array that it means.
type Error struct {
	// Code and Text are the array's.
	Code int
	Text string
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("refused with code %d", e.Code)
	}
	return fmt.Sprintf("refused with code %d: %s", e.Code, e.Text)
}

// The codes that are known.
const (
	codeCredentials    = 5
	codeSession        = 1793
	codeVolumeNotFound = 10081
	codeServerNotFound = 10086
)

// errSubmitted: the array works on the request.
var errSubmitted = errors.New("the array still works on the request")

// submitted begins the text of such an answer, whose code is not 0.
const submitted = "The request has been submitted"

// meanings are what texts mean where the code is unknown; the first one that fits. They are in lower case.
var meanings = []struct {
	meaning error
	words   []string
}{
	{array.ErrNotFound, []string{"should be found", "not found", "doesn't exist", "does not exist", "no such"}},
	{array.ErrExists, []string{"already exist", "already taken", "already used", "already in use", "must be unique"}},
	{array.ErrHasSnapshots, []string{"has snapshots", "have snapshots", "with snapshots"}},
	{array.ErrAttached, []string{"attached", "in-use", "in use"}},
	{array.ErrNoRoom, []string{
		"not enough", "insufficient", "no space", "no free", "no room", "out of space", "exceeds the", "in protected mode", "in emergency mode",
	}},
	{array.ErrBusy, []string{"busy", "in progress", "try again", "migrating"}},
	// It may have done it, or do it yet.
	{array.ErrUncertain, []string{"timed out", "timeout", "internal error"}},
}

func (e *Error) Unwrap() error {
	switch e.Code {
	case codeCredentials, codeSession:
		return array.ErrCredentials
	case codeVolumeNotFound, codeServerNotFound:
		return array.ErrNotFound
	}
	text := strings.ToLower(e.Text)
	for _, m := range meanings {
		for _, words := range m.words {
			if strings.Contains(text, words) {
				return m.meaning
			}
		}
	}
	return array.ErrDeclined
}

// ended is the error of a call whose context has ended. One that was cancelled says nothing about the
// array.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", array.ErrTimeout, err)
}

// transportError is the error of a request without an answer. ctx is the caller's.
func transportError(ctx context.Context, err error) error {
	// What it adds is the URL, with names of volumes.
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		err = outer.Err
	}
	if ctx.Err() != nil {
		return ended(ctx.Err())
	}
	var (
		timeout     net.Error
		unknown     x509.UnknownAuthorityError
		hostname    x509.HostnameError
		invalid     x509.CertificateInvalidError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid), errors.As(err, &certificate):
		return fmt.Errorf("%w: %w", array.ErrTLS, err)
	case errors.As(err, &record):
		return fmt.Errorf("%w: %w", array.ErrBadAnswer, err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: %w", array.ErrTimeout, err)
	}
	return fmt.Errorf("%w: %w", array.ErrUnreachable, err)
}

// outcomeOf is the word for metrics.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errSubmitted):
		return "submitted"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, array.ErrCredentials):
		return "credentials"
	case errors.Is(err, array.ErrTLS):
		return "tls"
	case errors.Is(err, array.ErrTimeout):
		return "timeout"
	case errors.Is(err, array.ErrBadAnswer):
		return "badanswer"
	case errors.Is(err, array.ErrUnreachable):
		return "unreachable"
	}
	return "refused"
}
