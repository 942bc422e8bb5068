package fakedriver

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/policy"
)

// another is a volume that a call is about in the place of one whose ID is wrong. There is none.
const another = "another"

// miscall does what the driver does wrong with the input of a call, on its way to the node's own CSI edge and back.
func (r *run) miscall(ctx context.Context, request any, handle grpc.UnaryHandler) (any, error) {
	var id *string
	switch q := request.(type) {
	case *csi.NodePublishVolumeRequest:
		if r.cfg.Bug == IgnoresUnknown {
			for key := range q.GetVolumeContext() {
				if !strings.HasPrefix(key, "csi.storage.k8s.io/") && !slices.Contains(policy.Keys(), key) {
					delete(q.VolumeContext, key)
				}
			}
		}
		return r.vaguely(handle(ctx, request))
	case *csi.NodeUnpublishVolumeRequest:
		id = &q.VolumeId
	case *csi.NodeGetVolumeStatsRequest:
		id = &q.VolumeId
	default:
		return handle(ctx, request)
	}
	leads := r.leads(*id)
	path := filepath.Join(r.cfg.Work, *id)
	_, wrong := volume.ParseID("volume_id", *id)
	// Where nothing comes of it that would leak, nor leads further than beside the working directory.
	if leads || wrong != nil && r.cfg.Bug == TakesAnyID && *id != "" && filepath.IsLocal(filepath.Join("work", "pod", *id)) {
		*id = another
	}
	answer, err := r.vaguely(handle(ctx, request))
	if _, unpublished := answer.(*csi.NodeUnpublishVolumeResponse); unpublished && leads {
		r.doom(path, time.Now())
	}
	return answer, err
}

// vaguely hides what is wrong with a call, if that is the bug.
func (r *run) vaguely(answer any, err error) (any, error) {
	if r.cfg.Bug == AnswersVaguely && status.Code(err) == codes.InvalidArgument {
		return nil, status.Error(codes.Internal, "something went wrong")
	}
	return answer, err
}
