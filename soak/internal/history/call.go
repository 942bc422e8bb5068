package history

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Method is the name of a CSI call.
type Method string

// The methods that the soak calls.
const (
	GetCapabilities     Method = "NodeGetCapabilities"
	Publish             Method = "NodePublishVolume"
	Unpublish           Method = "NodeUnpublishVolume"
	Stage               Method = "NodeStageVolume"
	Unstage             Method = "NodeUnstageVolume"
	ControllerPublish   Method = "ControllerPublishVolume"
	ControllerUnpublish Method = "ControllerUnpublishVolume"
)

// Methods are all of them, in the order of the report.
var Methods = []Method{GetCapabilities, ControllerPublish, Stage, Publish, Unpublish, Unstage, ControllerUnpublish}

// OfVolume reports whether the method changes a volume.
func (m Method) OfVolume() bool { return m != GetCapabilities }

// Call is one call and its answer.
type Call struct {
	Method Method
	From   time.Time
	To     time.Time
	Err    error
	// Cancelled: the client gave the call up itself, on purpose.
	Cancelled bool
	// Contended: another call for the volume ran at the same time, or may have.
	Contended bool
	// Bad: the input was bad on purpose, and the call belongs to no volume.
	Bad bool
}

// Code is the answer's code.
func (c Call) Code() codes.Code { return status.Code(c.Err) }

// Took is how long it was until the answer.
func (c Call) Took() time.Duration { return c.To.Sub(c.From) }

// worksUntil is until when the driver may have been at work on a call that is over.
func (c Call) worksUntil() time.Time {
	switch c.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return c.To.Add(settleLimit)
	}
	return c.To
}

// Final reports whether the kubelet takes the code of a failed publish or stage
// as the last word, that nothing is mounted. With any other code it may be, and
// an unpublish follows (kubernetes pkg/volume/csi/csi_client.go, isFinalError).
func Final(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return false
	}
	return true
}
