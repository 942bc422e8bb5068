package certs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

const (
	// lookEvery is how often the Secret and the places of the CA are read. What another replica
	// writes is served that much later, at most; overlap is many times longer.
	lookEvery = 30 * time.Second
	// firstRetry is the time between attempts while there is no certificate at all.
	firstRetry = 2 * time.Second
	// callLimit bounds one call of the API server.
	callLimit = 10 * time.Second
	// races bounds how often a lost race is run again before the next look.
	races = 5
)

// BuiltinConfig is what a Builtin works with. All fields are required, except Publishing.
type BuiltinConfig struct {
	// Program is whose certificate it is, such as katbox-gateway.
	Program string
	Client  kubernetes.Interface
	// Namespace and Secret name the Secret that all replicas share.
	Namespace, Secret string
	// Names are the DNS names that the certificate is for.
	Names      []string
	Publishing Publishing
	// Ends is called with the end of the certificate each time that there is a new one.
	Ends func(time.Time)
	Log  logr.Logger
}

func (c BuiltinConfig) check() error {
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"Program", c.Program == ""}, {"Client", c.Client == nil},
		{"Namespace", c.Namespace == ""}, {"Secret", c.Secret == ""}, {"Names", len(c.Names) == 0},
		{"Ends", c.Ends == nil}, {"Log", c.Log.GetSink() == nil},
	} {
		if field.missing {
			return fmt.Errorf("certs: BuiltinConfig.%s is missing", field.name)
		}
	}
	return c.Publishing.check()
}

// Builtin makes and renews a CA and a certificate. It is a Source.
type Builtin struct {
	served
	cfg       BuiltinConfig
	publisher *publisher
	looks     repeated
	// jitter is how much later than others this replica renews.
	jitter float64
}

// NewBuiltin returns a Builtin that has no certificate until Start.
func NewBuiltin(cfg BuiltinConfig) (*Builtin, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Builtin{
		served:    served{ends: cfg.Ends, log: cfg.Log},
		cfg:       cfg,
		publisher: newPublisher(cfg.Program, cfg.Publishing, cfg.Log),
		looks:     repeated{interval: lookEvery, log: cfg.Log},
		jitter:    rand.Float64() * jitterMost,
	}, nil
}

// Start returns once there is a certificate, and keeps it current until ctx ends. It waits for an
// API server that does not answer, and for a Secret that it must not touch.
func (b *Builtin) Start(ctx context.Context) error {
	first := repeated{interval: firstRetry, log: b.cfg.Log}
	for {
		first.report(ctx, b.look(ctx))
		if b.current.Load() != nil {
			b.looks.start(ctx, b.look)
			return nil
		}
		if err := first.pause(ctx); err != nil {
			return fmt.Errorf("waiting for a certificate: %w", err)
		}
	}
}

// Wait returns when all has ended that Start has begun.
func (b *Builtin) Wait() {
	b.looks.ended.Wait()
}

// look does all that is due. Each step may be the last: the Secret is written before its content is
// published or served, and a CA is called published in the Secret after it was.
func (b *Builtin) look(ctx context.Context) error {
	s, secret, err := b.settle(ctx)
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", b.cfg.Namespace, b.cfg.Secret, err)
	}
	b.trust(s.bundle())
	err = b.publisher.publish(ctx, s.bundle())
	b.serve(s.leaf)
	if err != nil || s.next == nil || !s.published.IsZero() {
		return err
	}
	s.published = time.Now()
	if _, err := b.write(ctx, secret, s); err != nil && !lostRace(err) {
		return fmt.Errorf("secret %s/%s: %w", b.cfg.Namespace, b.cfg.Secret, err)
	}
	return nil
}

// settle returns the Secret, after it has done there what is due. Of several replicas the first
// writer wins, and the others take what it wrote.
func (b *Builtin) settle(ctx context.Context) (*state, *corev1.Secret, error) {
	for race := 1; ; race++ {
		secret, err := b.read(ctx)
		if err != nil {
			return nil, nil, err
		}
		s, done, err := b.due(secret)
		if err != nil || len(done) == 0 {
			return s, secret, err
		}
		secret, err = b.write(ctx, secret, s)
		if err == nil {
			b.cfg.Log.Info("The Secret with the certificates has changed",
				logkeys.Namespace, b.cfg.Namespace, "secret", b.cfg.Secret, "done", done)
			return s, secret, nil
		}
		if !lostRace(err) || race == races {
			return nil, nil, err
		}
	}
}

// due returns what the Secret has to contain, and what was done to come to that. No Secret, and one
// that is damaged, are replaced by a fresh one.
func (b *Builtin) due(secret *corev1.Secret) (*state, []string, error) {
	now := time.Now()
	if secret == nil {
		s, err := fresh(b.cfg.Program, b.cfg.Names, now)
		return s, []string{"made a CA and a certificate, as there was no Secret"}, err
	}
	s, damage, err := decode(secret.Data)
	if errors.Is(err, errFuture) {
		return nil, nil, err
	}
	if err != nil {
		s, failed := fresh(b.cfg.Program, b.cfg.Names, now)
		return s, []string{fmt.Sprintf("made a CA and a certificate, as %v", err)}, failed
	}
	s, done, err := s.advance(b.cfg.Names, now, b.jitter)
	return s, append(damage, done...), err
}

// read returns the Secret, or nil if there is none.
func (b *Builtin) read(ctx context.Context) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	secret, err := b.cfg.Client.CoreV1().Secrets(b.cfg.Namespace).Get(ctx, b.cfg.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, err
}

// write replaces the Secret that was read, or makes the first. Labels and keys of others stay.
func (b *Builtin) write(ctx context.Context, before *corev1.Secret, s *state) (*corev1.Secret, error) {
	data, err := s.encode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	secrets := b.cfg.Client.CoreV1().Secrets(b.cfg.Namespace)
	if before == nil {
		return secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: b.cfg.Secret, Namespace: b.cfg.Namespace, Labels: madeBy(b.cfg.Program)},
			Type:       corev1.SecretTypeOpaque,
			Data:       data,
		}, metav1.CreateOptions{})
	}
	after := before.DeepCopy()
	for _, key := range keys {
		delete(after.Data, key)
	}
	if after.Data == nil {
		after.Data = make(map[string][]byte, len(data))
	}
	maps.Copy(after.Data, data)
	return secrets.Update(ctx, after, metav1.UpdateOptions{})
}

// madeBy are the labels of objects that a program makes.
func madeBy(program string) map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": program}
}

// lostRace reports whether another replica has written first.
func lostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
