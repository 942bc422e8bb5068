package kubelet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// endedPods is how many pods that have ended the PodsAPI lists at the most: as those
// of which a cluster keeps the objects for a while.
const endedPods = 1000

// PodsAPI is the socket on which a kubelet says how its pods end (v1alpha1.Pods of
// k8s.io/kubelet). It says so before it unpublishes their volumes. Unlike a kubelet
// it knows only pods that have ended, and restarts with none.
type PodsAPI struct {
	server *grpc.Server
	driver string

	mu     sync.Mutex
	ended  [][]byte
	change chan struct{} // is closed with the next pod that ends
	first  int           // the number of the first of ended
}

// StartPodsAPI listens below the kubelet's directory. The driver is whose volumes
// the pods have.
func StartPodsAPI(root, driver string) (*PodsAPI, error) {
	socket := filepath.Join(root, "pods-api", "pods-api.sock")
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("the kubelet's PodsAPI: %w", err)
	}
	p := &PodsAPI{driver: driver, change: make(chan struct{})}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(plain{}), grpc.UnknownServiceHandler(p.watch))
	go func() { _ = p.server.Serve(listener) }() // it ends with Stop
	return p, nil
}

// Stop ends it.
func (p *PodsAPI) Stop() { p.server.Stop() }

// Ended says how a pod has ended.
func (p *PodsAPI) Ended(pod *Pod) {
	phase := "Succeeded"
	if pod.Plan.Failed {
		phase = "Failed"
	}
	var volumes []string
	for _, v := range pod.Volumes {
		if v.Plan.Persistent {
			continue
		}
		v.Story.EndTold(phase)
		volumes = append(volumes, v.Plan.Name)
	}
	p.Say(pod.Plan.UID, phase, volumes...)
}

// Exit is how a container ended.
type Exit struct {
	Container, Reason string
	Code              int
	Began, Ended      time.Time
}

// Exited says how a pod has ended, by its only container.
func (p *PodsAPI) Exited(pod *Pod, e Exit) {
	phase := "Succeeded"
	if e.Code != 0 {
		phase = "Failed"
	}
	state := number(nil, 1, e.Code)
	state = message(message(state, 3, []byte(e.Reason)), 5, number(nil, 1, int(e.Began.Unix())))
	state = message(state, 6, number(nil, 1, int(e.Ended.Unix())))
	container := message(text(1, e.Container), 2, message(nil, 3, state)) // terminated
	p.say(pod.Plan.UID, message(text(1, phase), 8, container), pod.Volumes[0].Plan.Name)
}

// Say says that the pod with that UID is in a phase. The volumes are those of the driver, by their names in the pod.
func (p *PodsAPI) Say(uid, phase string, volumes ...string) { p.say(uid, text(1, phase), volumes...) }

func (p *PodsAPI) say(uid string, status []byte, volumes ...string) {
	metadata := text(5, uid)
	var spec []byte
	for _, name := range volumes {
		source := message(nil, 28, text(1, p.driver)) // csi
		spec = message(spec, 1, message(text(1, name), 2, source))
	}
	object := message(message(message(nil, 1, metadata), 2, spec), 3, status)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, object)
	if more := len(p.ended) - endedPods; more > 0 {
		p.ended, p.first = p.ended[more:], p.first+more
	}
	close(p.change)
	p.change = make(chan struct{})
}

// The kinds of an event.
const (
	added    = 1
	modified = 2
	synced   = 4
)

// watch answers WatchPods: with all pods, and then with each that ends.
func (p *PodsAPI) watch(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	send := func(kind uint64, pod []byte) error {
		event := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), kind)
		if pod != nil {
			event = message(event, 2, pod)
		}
		return stream.SendMsg(&event)
	}
	for next, kind := 0, uint64(added); ; kind = modified {
		p.mu.Lock()
		next = max(next, p.first)
		list, change := p.ended[next-p.first:], p.change
		p.mu.Unlock()
		for _, pod := range list {
			if err := send(kind, pod); err != nil {
				return err
			}
		}
		next += len(list)
		if kind == added {
			if err := send(synced, nil); err != nil {
				return err
			}
		}
		select {
		case <-change:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func text(number protowire.Number, s string) []byte { return message(nil, number, []byte(s)) }

// number appends a field that is a number.
func number(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// message appends a field that is a message.
func message(b []byte, number protowire.Number, field []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), field)
}

// plain is a codec of messages that are encoded already.
type plain struct{}

var _ encoding.CodecV2 = plain{}

// Marshal returns the bytes.
func (plain) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, errors.New("not bytes")
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// Unmarshal keeps a copy of the bytes.
func (plain) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errors.New("not bytes")
	}
	*b = data.Materialize()
	return nil
}

// Name is that of the codec it takes the place of.
func (plain) Name() string { return "proto" }
