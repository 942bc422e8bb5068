package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// Service is one gRPC service and what implements it.
type Service struct {
	Desc           *grpc.ServiceDesc
	Implementation any
}

// Calls counts the calls of one CSI method.
type Calls interface {
	// CallBegan counts a call that has come.
	CallBegan()
	// CallEnded counts a call that was answered with a gRPC code, such as OK.
	CallEnded(code string, took time.Duration)
}

// Config is what a Server works with. All fields except Trace and Hold are required.
type Config struct {
	Services []Service
	// Code returns the code of an error that is not nil. It is not asked about one that is a gRPC
	// status already.
	Code func(error) codes.Code
	// Names returns keys and values for a log line: what the request is about, and no secrets. The
	// request may be of any type, and its fields may be anything.
	Names func(req any) []any
	// Count returns the counters of a method, such as NodePublishVolume.
	Count func(method string) Calls
	Log   logr.Logger
	Trace grpc.UnaryServerInterceptor // makes a span of each call; nil for none
	// Hold comes before all others: a call that it holds up is not running yet. Nil for none.
	Hold grpc.UnaryServerInterceptor
}

// Server serves CSI on a socket.
type Server struct{ *grpc.Server }

// New returns a server. It panics if a required field is missing, which is a mistake in the program.
func New(cfg Config) *Server {
	if len(cfg.Services) == 0 || cfg.Code == nil || cfg.Names == nil || cfg.Count == nil {
		panic(errors.New("edge: a field of Config is missing"))
	}
	around := []grpc.UnaryServerInterceptor{countCalls(cfg), logCalls(cfg), toStatus(cfg.Code), recoverPanics(cfg.Log), refuseForsaken}
	if cfg.Trace != nil {
		around = slices.Insert(around, 0, cfg.Trace)
	}
	if cfg.Hold != nil {
		around = slices.Insert(around, 0, cfg.Hold)
	}
	// Requests are small. Windows that adapt themselves to the bandwidth would measure it with each call, which costs
	// a message there and back.
	s := grpc.NewServer(grpc.ChainUnaryInterceptor(around...), grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		grpc.NumStreamWorkers(handlers))
	for _, service := range cfg.Services {
		s.RegisterService(service.Desc, service.Implementation)
	}
	return &Server{s}
}

// handlers is how many calls find a goroutine that is there. It has the stack that calls need; that of a new one would have to
// grow several times.
const handlers = 32

// window is how many bytes of a request, and of all that come at the same time, may be on their way to the server.
const window = 1 << 20

// Stop accepts no further calls and waits for the running ones. If ctx ends first, it breaks them
// off and returns an error.
func (s *Server) Stop(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.Server.Stop()
		<-done
		return fmt.Errorf("calls were broken off: %w", ctx.Err())
	}
}
