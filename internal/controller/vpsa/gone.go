package vpsa

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/controller/array"
)

// sure reports whether the array's code says what the error is, and not some words in its text.
func (e *Error) sure() bool {
	switch e.Code {
	case codeCredentials, codeSession, codeVolumeNotFound, codeServerNotFound:
		return true
	}
	return false
}

// volumeGone is the error of a question about a volume. Where words in the answer alone say that there is
// no such volume, the list of all volumes has to say so too: what is gone needs no detaching, and a node
// that still reaches the volume goes on writing.
func (c *client) volumeGone(ctx context.Context, id string, err error) error {
	refused := (*Error)(nil)
	if !errors.Is(err, array.ErrNotFound) || !errors.As(err, &refused) || refused.sure() {
		return err
	}
	found := false
	failed := allVolumes.visit(ctx, c, func(page []volume) error {
		for _, v := range page {
			found = found || string(v.ID) == id
		}
		return nil
	})
	switch {
	case errors.Is(failed, array.ErrNotFound): // that is not to be believed here
		return fmt.Errorf("%w: %s; %s", array.ErrUncertain, err.Error(), failed.Error())
	case failed != nil:
		return failed
	case found:
		return fmt.Errorf("%w: volume %s is in the list of all: %s", array.ErrUncertain, id, err.Error())
	}
	return err
}
