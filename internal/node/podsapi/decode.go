package podsapi

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
)

// Of a v1.Pod a dozen fields are needed; package k8s.io/api, which decodes all, would be linked with
// all of Kubernetes' types. The numbers are those of k8s.io/api/core/v1/generated.proto and
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto, which do not change.

// The types of an event.
const (
	eventAdded    = 1
	eventModified = 2
	eventSynced   = 4
)

const (
	// mostContainers bounds the ends of containers that are kept of a pod.
	mostContainers = 1000
	disruption     = "DisruptionTarget"
)

// event is a WatchPodsEvent.
type event struct {
	kind uint64
	pod  []byte
}

// field is a field of a message: a number, or bytes.
type field struct {
	number uint64
	bytes  []byte
}

// fields calls each with the fields of a message. Fields of other types are left out.
func fields(message []byte, each func(protowire.Number, field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		var f field
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
			number = 0
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if number == 0 {
			continue
		}
		if err := each(number, f); err != nil {
			return err
		}
	}
	return nil
}

func decodeEvent(message []byte) (e event, err error) {
	err = fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			e.kind = f.number
		case 2:
			e.pod = f.bytes
		}
		return nil
	})
	if err != nil {
		return event{}, fmt.Errorf("decode an event: %w", err)
	}
	return e, nil
}

// decodePod returns what says how a pod ended. Its volumes are the inline volumes of a driver.
func decodePod(message []byte, driver string) (outcome.Pod, error) {
	d := decoder{driver: driver}
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			return fields(f.bytes, d.metadata)
		case 2:
			return fields(f.bytes, d.spec)
		case 3:
			return fields(f.bytes, d.status)
		}
		return nil
	})
	if err != nil {
		return outcome.Pod{}, fmt.Errorf("decode a pod: %w", err)
	}
	return d.pod, nil
}

// decoder collects a pod.
type decoder struct {
	driver string
	pod    outcome.Pod
}

func (d *decoder) metadata(number protowire.Number, f field) (err error) {
	switch number {
	case 5:
		d.pod.UID, err = volume.ParsePodUID("metadata.uid", string(f.bytes))
	case 8:
		d.pod.Created, err = decodeTime(f.bytes)
	case 9:
		d.pod.Deletion, err = decodeTime(f.bytes)
	case 10:
		seconds := int64(f.number)
		d.pod.Grace = &seconds
	}
	return err
}

func (d *decoder) spec(number protowire.Number, f field) error {
	if number != 1 {
		return nil
	}
	var name, driver string
	err := fields(f.bytes, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			name = string(f.bytes)
		case 2:
			return fields(f.bytes, func(number protowire.Number, f field) error {
				if number != 28 {
					return nil
				}
				return fields(f.bytes, func(number protowire.Number, f field) error {
					if number == 1 {
						driver = string(f.bytes)
					}
					return nil
				})
			})
		}
		return nil
	})
	if driver == d.driver && len(d.pod.Volumes) < outcome.MostVolumes {
		d.pod.Volumes = append(d.pod.Volumes, name)
	}
	return err
}

func (d *decoder) status(number protowire.Number, f field) (err error) {
	switch number {
	case 1:
		d.pod.Phase = string(f.bytes)
	case 2:
		var kind, status string
		err = fields(f.bytes, func(number protowire.Number, f field) error {
			switch number {
			case 1:
				kind = string(f.bytes)
			case 2:
				status = string(f.bytes)
			}
			return nil
		})
		d.pod.Disrupted = d.pod.Disrupted || kind == disruption && status == "True"
	case 4:
		d.pod.Reason = string(f.bytes)
	case 7:
		d.pod.Started, err = decodeTime(f.bytes)
	case 8, 10, 13: // containers, init containers, ephemeral containers
		return d.container(f.bytes)
	}
	return err
}

// container takes a ContainerStatus.
func (d *decoder) container(message []byte) error {
	var now, last state
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 2:
			return now.decode(f.bytes)
		case 3:
			return last.decode(f.bytes)
		}
		return nil
	})
	d.pod.FailedBefore = d.pod.FailedBefore || last.ended && last.end.Code != 0
	switch {
	case now.ended && len(d.pod.Containers) < mostContainers:
		d.pod.Containers = append(d.pod.Containers, now.end)
	case now.ended || now.runs || last.ended:
		d.pod.Running = true
	default:
		d.pod.Waiting = true
	}
	return err
}

// state is a ContainerState. One that neither runs nor has ended waits.
type state struct {
	runs, ended bool
	end         outcome.Container
}

func (s *state) decode(message []byte) error {
	return fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 2:
			s.runs = true
		case 3:
			s.ended = true
			return fields(f.bytes, s.terminated)
		}
		return nil
	})
}

func (s *state) terminated(number protowire.Number, f field) (err error) {
	switch number {
	case 1:
		s.end.Code = int32(f.number)
	case 3:
		s.end.OutOfMemory = string(f.bytes) == outcome.ReasonOutOfMemory
	case 5:
		s.end.Started, err = decodeTime(f.bytes)
	case 6:
		s.end.Finished, err = decodeTime(f.bytes)
	}
	return err
}

// decodeTime reads a Time. That of an empty message is zero.
func decodeTime(message []byte) (time.Time, error) {
	if len(message) == 0 {
		return time.Time{}, nil
	}
	var seconds int64
	err := fields(message, func(number protowire.Number, f field) error {
		if number == 1 {
			seconds = int64(f.number)
		}
		return nil
	})
	return time.Unix(seconds, 0), err
}
