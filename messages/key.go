package messages

import (
	"context"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// KeyOf is the ID by which the kit finds the actor of something, where several kinds have actors: the kind and a name,
// such as volume/pvc-1.
func KeyOf(kind, name string) volume.ID { return volume.ID(kind + "/" + name) }

// RoutingTo addresses a request of a caller to something. The caller waits until ctx ends.
func RoutingTo(ctx context.Context, kind, name string) Routing {
	deadline, _ := ctx.Deadline()
	return Routing{ID: KeyOf(kind, name), Deadline: deadline}
}

// SplitKey returns the kind and the name of a key.
func SplitKey(id volume.ID) (kind, name string) {
	kind, name, _ = strings.Cut(string(id), "/")
	return kind, name
}
