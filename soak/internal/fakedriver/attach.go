package fakedriver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/internal/content"
)

// attach mounts a retained volume of another pod read-only. Its caller has entered the
// volume by which it does so, and known is that, if there is one.
func (r *run) attach(known record, q *csi.NodePublishVolumeRequest) error {
	id, target, values := q.GetVolumeId(), q.GetTargetPath(), q.GetVolumeContext()
	pod, name, _ := strings.Cut(values["attach"], "/")
	if !q.GetReadonly() {
		return r.invalid("volume_context attach", "is for a volume that is read-only")
	}
	if known.published && mounted(target) {
		return nil
	}
	sum := sha256.Sum256([]byte(pod + name))
	from := "csi-" + hex.EncodeToString(sum[:])
	leave, err := r.enter(from)
	if err != nil {
		return err
	}
	defer leave()
	source, ok := r.disk.get(from)
	switch {
	case !ok || source.pod != pod || source.namespace != values[podNamespace] || source.deleting:
		return status.Error(codes.NotFound, "there is no such volume to attach")
	case source.published:
		return status.Error(codes.Aborted, "the volume to attach is published")
	}
	r.hoarding.Lock()
	defer r.hoarding.Unlock()
	if r.cfg.Bug != HoardsAttached && r.tooMuch(source) {
		return status.Error(codes.ResourceExhausted, "too much is attached")
	}
	if err := os.Mkdir(target, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return status.Error(codes.Internal, err.Error())
	}
	if err := bind(r.data(source), target, r.cfg.Bug != AttachesWritable); err != nil {
		err = errors.Join(err, unix.Rmdir(target))
		return status.Error(codes.Internal, fmt.Sprintf("attach: %v", err))
	}
	source.attachedBy = id
	r.disk.put(source)
	r.disk.put(record{id: id, pod: values[podUID], target: target, published: true, source: from, namespace: source.namespace,
		podName: values[podName]})
	return nil
}

// tooMuch reports whether pods have so much attached that one more volume would be beyond the bound.
func (r *run) tooMuch(source record) bool {
	if r.cfg.MaxPinned == 0 {
		return false
	}
	sum := content.Taken(r.data(source))
	for _, v := range r.disk.all(false) {
		if v.attachedBy != "" && v.id != source.id {
			sum += content.Taken(r.data(v))
		}
	}
	return sum > int64(r.cfg.MaxPinned*float64(total(r.cfg.Work)))
}

// detach forgets a volume that has no data of its own, and keeps the other for a grace.
func (r *run) detach(v record) error {
	leave, err := r.enter(v.source)
	if err != nil {
		return err
	}
	defer leave()
	if source, ok := r.disk.get(v.source); ok {
		if source.attachedBy = ""; r.cfg.Bug != HurriesAttached {
			source.detached = time.Now()
		}
		r.disk.put(source)
	}
	r.disk.remove(v.id)
	if r.cfg.Bug == BuriesLookers {
		r.bury(v, volume.Expired)
	}
	return nil
}

// attached reports whether a pod has a volume attached, or had it a moment ago.
func (r *run) attached(v record) bool {
	return r.cfg.Bug != DeletesAttached && (v.attachedBy != "" || time.Since(v.detached) < r.cfg.ReleaseGrace)
}
