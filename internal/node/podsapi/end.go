package podsapi

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/katbox/katbox/internal/model/podend"
)

// decodeEnd returns what is kept of a pod that has ended.
func decodeEnd(message []byte) (podend.Pod, error) {
	d := endDecoder{containers: map[string]int{}}
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
		return podend.Pod{}, fmt.Errorf("decode how a pod has ended: %w", err)
	}
	slices.SortStableFunc(d.pod.Containers, func(a, b podend.Container) int { return order[a.Kind] - order[b.Kind] })
	return d.pod, nil
}

// order is that in which containers are started, by their kinds.
var order = map[string]int{podend.Init: 0, "": 1, podend.Ephemeral: 2}

// endDecoder collects the end of a pod.
type endDecoder struct {
	pod podend.Pod
	// containers are the places of the containers in it, by their names.
	containers map[string]int
}

func (d *endDecoder) metadata(number protowire.Number, f field) (err error) {
	switch number {
	case 1:
		d.pod.Name = string(f.bytes)
	case 3:
		d.pod.Namespace = string(f.bytes)
	case 5:
		d.pod.UID = string(f.bytes)
	case 8:
		d.pod.Created, err = decodeTime(f.bytes)
	case 9:
		d.pod.Deleted, err = decodeTime(f.bytes)
	case 12:
		return d.annotation(f.bytes)
	}
	return err
}

// annotation takes an entry of the annotations, if it is the one that is kept.
func (d *endDecoder) annotation(message []byte) error {
	var key, value []byte
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			key = f.bytes
		case 2:
			value = f.bytes
		}
		return nil
	})
	if string(key) == podend.DefaultContainer {
		d.pod.Default = string(value)
	}
	return err
}

func (d *endDecoder) spec(number protowire.Number, f field) error {
	switch number {
	case 2:
		return d.container(f.bytes, "")
	case 3:
		d.pod.RestartPolicy = string(f.bytes)
	case 10:
		d.pod.Node = string(f.bytes)
	case 20:
		return d.container(f.bytes, podend.Init)
	case 34:
		return fields(f.bytes, func(number protowire.Number, f field) error {
			if number != 1 {
				return nil
			}
			return d.container(f.bytes, podend.Ephemeral)
		})
	}
	return nil
}

// place returns the container with a name.
func (d *endDecoder) place(name, kind string) *podend.Container {
	at, ok := d.containers[name]
	if !ok && len(d.pod.Containers) < mostContainers {
		at, d.containers[name] = len(d.pod.Containers), len(d.pod.Containers)
		d.pod.Containers = append(d.pod.Containers, podend.Container{Name: name, Kind: kind})
	} else if !ok {
		return &podend.Container{}
	}
	return &d.pod.Containers[at]
}

// container takes a Container of the spec.
func (d *endDecoder) container(message []byte, kind string) error {
	var c podend.Container
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			c.Name = string(f.bytes)
		case 2:
			c.Image = string(f.bytes)
		case 8:
			return fields(f.bytes, func(number protowire.Number, f field) error {
				switch number {
				case 1:
					return amount(&c.Limits, f.bytes)
				case 2:
					return amount(&c.Requests, f.bytes)
				}
				return nil
			})
		}
		return nil
	})
	known := d.place(c.Name, kind)
	known.Image, known.Limits, known.Requests = c.Image, c.Limits, c.Requests
	return err
}

// amount takes an entry of a ResourceList.
func amount(all *map[string]string, message []byte) error {
	var name, text string
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			name = string(f.bytes)
		case 2:
			return fields(f.bytes, func(number protowire.Number, f field) error {
				if number == 1 {
					text = string(f.bytes)
				}
				return nil
			})
		}
		return nil
	})
	if *all == nil {
		*all = map[string]string{}
	}
	(*all)[name] = text
	return err
}

func (d *endDecoder) status(number protowire.Number, f field) (err error) {
	switch number {
	case 1:
		d.pod.Phase = string(f.bytes)
	case 2:
		return d.condition(f.bytes)
	case 3:
		d.pod.Message = string(f.bytes)
	case 4:
		d.pod.Reason = string(f.bytes)
	case 7:
		d.pod.Started, err = decodeTime(f.bytes)
	case 8:
		return d.containerStatus(f.bytes, "")
	case 10:
		return d.containerStatus(f.bytes, podend.Init)
	case 13:
		return d.containerStatus(f.bytes, podend.Ephemeral)
	}
	return err
}

func (d *endDecoder) condition(message []byte) error {
	var kind, status string
	var why podend.Disruption
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			kind = string(f.bytes)
		case 2:
			status = string(f.bytes)
		case 5:
			why.Reason = string(f.bytes)
		case 6:
			why.Message = string(f.bytes)
		}
		return nil
	})
	if kind == disruption && status == "True" {
		d.pod.Disruption = &why
	}
	return err
}

func (d *endDecoder) containerStatus(message []byte, kind string) error {
	var now, last podend.State
	var name string
	var restarts int32
	err := fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			name = string(f.bytes)
		case 2:
			return decodeState(&now, f.bytes)
		case 3:
			return decodeState(&last, f.bytes)
		case 5:
			restarts = int32(f.number)
		}
		return nil
	})
	c := d.place(name, kind)
	c.State, c.Restarts = now, restarts
	if last != (podend.State{}) {
		c.Last = &last
	}
	return err
}

// decodeState reads a ContainerState.
func decodeState(s *podend.State, message []byte) error {
	return fields(message, func(number protowire.Number, f field) error {
		switch number {
		case 1:
			s.State = podend.Waiting
			return fields(f.bytes, func(number protowire.Number, f field) error {
				switch number {
				case 1:
					s.Reason = string(f.bytes)
				case 2:
					s.Message = string(f.bytes)
				}
				return nil
			})
		case 2:
			s.State = podend.Running
			return fields(f.bytes, func(number protowire.Number, f field) (err error) {
				if number == 1 {
					s.Started, err = decodeTime(f.bytes)
				}
				return err
			})
		case 3:
			s.State, s.ExitCode = podend.Terminated, new(int32)
			return fields(f.bytes, func(number protowire.Number, f field) error { return decodeTerminated(s, number, f) })
		}
		return nil
	})
}

func decodeTerminated(s *podend.State, number protowire.Number, f field) (err error) {
	switch number {
	case 1:
		*s.ExitCode = int32(f.number)
	case 2:
		s.Signal = int32(f.number)
	case 3:
		s.Reason = string(f.bytes)
	case 4:
		s.Message = string(f.bytes)
	case 5:
		s.Started, err = decodeTime(f.bytes)
	case 6:
		s.Finished, err = decodeTime(f.bytes)
	}
	return err
}
