package trust

import (
	"context"
	"errors"
	"io"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

// logErrors returns what a watch calls when it fails, before it tries again after 1 s to 30 s.
func logErrors(log logr.Logger, what string) cache.WatchErrorHandlerWithContext {
	return func(_ context.Context, _ *cache.Reflector, err error) {
		if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // A watch ends now and then, and goes on.
		}
		log.Info("Watching fails; what is known may be out of date", "watched", what, logkeys.Cause, err.Error())
	}
}
