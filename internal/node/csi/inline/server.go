package inline

import (
	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

// NewServer returns a server for the driver.
func NewServer(d *Driver) *edge.Server {
	return edge.New(edge.Config{
		Services: []edge.Service{{Desc: &csi.Identity_ServiceDesc, Implementation: d}, {Desc: &csi.Node_ServiceDesc, Implementation: d}},
		Code:     codeOf,
		Names:    func(req any) []any { return logkeys.About(d.named(req)) },
		Count:    func(method string) edge.Calls { return d.cfg.Metrics.Method(method) },
		Log:      d.cfg.Log, Trace: d.cfg.Trace,
	})
}

// named returns the names in a request, which may not be valid. A publish has a volume context; an
// unpublish has only the target path.
func (d *Driver) named(req any) (r volume.Record) {
	if v, ok := req.(interface{ GetVolumeId() string }); ok {
		r.ID = volume.ID(v.GetVolumeId())
	}
	if v, ok := req.(interface{ GetTargetPath() string }); ok {
		r.Pod, r.VolumeName = kubelet.ParseTarget(d.podsDir, v.GetTargetPath())
	}
	if v, ok := req.(interface{ GetVolumePath() string }); ok {
		r.Pod, r.VolumeName = kubelet.ParseTarget(d.podsDir, v.GetVolumePath())
	}
	if v, ok := req.(interface{ GetVolumeContext() map[string]string }); ok {
		attributes := v.GetVolumeContext()
		r.Namespace, r.PodName = volume.ObjectName(attributes[kubelet.ContextNamespace]), volume.ObjectName(attributes[kubelet.ContextPodName])
	}
	return r
}
