package certs

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// slow is a client whose replica is overtaken: another acts between its reading and its writing of
// a Secret. The methods are those of the interfaces that it stands for.
type slow struct {
	kubernetes.Interface
	overtake func()
}

type slowCore struct {
	coreclient.CoreV1Interface
	overtake func()
}

type slowSecrets struct {
	coreclient.SecretInterface
	overtake func()
}

func (s slow) CoreV1() coreclient.CoreV1Interface {
	return slowCore{s.Interface.CoreV1(), s.overtake}
}

func (s slowCore) Secrets(namespace string) coreclient.SecretInterface {
	return slowSecrets{s.CoreV1Interface.Secrets(namespace), s.overtake}
}

func (s slowSecrets) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	s.overtake()
	return s.SecretInterface.Create(ctx, secret, options)
}

func (s slowSecrets) Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	s.overtake()
	return s.SecretInterface.Update(ctx, secret, options)
}

// overtaken returns a replica that another overtakes once, at its next writing.
func (c *cluster) overtaken(by *replica) *replica {
	r := c.newReplica()
	var once sync.Once
	r.cfg.Client = slow{c.core, func() { once.Do(func() { by.mustLook(c.t) }) }}
	return r
}

func TestRaceForTheFirstSecret(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		winner := c.newReplica()
		loser := c.overtaken(winner)
		loser.mustLook(t)
		if !leafOf(t, loser).Equal(leafOf(t, winner)) {
			t.Error("the loser shows a certificate of its own")
		}
		c.trusted(loser)
		if n := len(must(parseCerts(c.published()))); n != 1 {
			t.Errorf("%d CAs are published", n)
		}
	})
}

func TestRaceForARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		winner := c.newReplica()
		winner.mustLook(t)
		before := leafOf(t, winner)
		time.Sleep(21 * day)
		loser := c.overtaken(winner)
		loser.mustLook(t)
		if leaf := leafOf(t, loser); leaf.Equal(before) || !leaf.Equal(leafOf(t, winner)) {
			t.Error("the loser shows another certificate")
		}
	})
}

// TestReplicasStartTogether starts some at once.
func TestReplicasStartTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var replicas []*replica
		var started sync.WaitGroup
		for range 4 {
			r := c.newReplica()
			replicas = append(replicas, r)
			started.Go(func() { c.run(r) })
		}
		started.Wait()
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		for _, r := range replicas {
			c.trusted(r)
			if !leafOf(t, r).Equal(leafOf(t, replicas[0])) {
				t.Error("two replicas show different certificates")
			}
		}
		if bundle := must(parseCerts(c.published())); len(bundle) != 1 {
			t.Errorf("%d CAs are published", len(bundle))
		}
		created := slices.DeleteFunc(c.written(), func(write string) bool { return write != "update secrets" })
		if len(created) > 0 {
			t.Errorf("the Secret was replaced: %v", created)
		}
	})
}
