package certs

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// age lets time pass until the CA has to be replaced.
func (r *replica) age(t *testing.T) {
	for range 16 {
		time.Sleep(15 * day)
		r.mustLook(t)
	}
	time.Sleep(5 * day)
}

// TestCrashes ends a replica at each of its writes, before and after the API server has carried it
// out. The other replica can be reached all the time, and the next one comes to the same end.
func TestCrashes(t *testing.T) {
	crashed := errors.New("crashed")
	for _, test := range []struct {
		name string
		// prepare brings the cluster, in which another replica runs, to where something is due. It is
		// nil if there is nothing yet.
		prepare func(c *cluster, other *replica)
		// least is how many writes there are.
		least int
	}{
		{"first", nil, 3},
		{"certificate", func(*cluster, *replica) { time.Sleep(21 * day) }, 1},
		{"next CA", func(c *cluster, other *replica) { other.age(c.t) }, 4},
		{"next CA becomes active", func(c *cluster, other *replica) {
			other.age(c.t)
			other.mustLook(c.t)
			time.Sleep(overlap)
		}, 1},
		{"Secret gone", func(c *cluster, _ *replica) { c.dropSecret() }, 3},
		{"Secret damaged", func(c *cluster, _ *replica) { c.putSecret(map[string][]byte{"ca.crt": []byte("x")}) }, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			for write, hit := 1, true; hit; write++ {
				for _, done := range []bool{false, true} {
					inBubble(t, func(t *testing.T, c *cluster) {
						where := fmt.Sprintf("write %d, carried out: %v", write, done)
						other := c.newReplica()
						if test.prepare != nil {
							other.mustLook(t)
							other.jitter = 0
							test.prepare(c, other)
						}
						victim := c.newReplica()
						victim.jitter = 0
						writes := 0
						c.breaks(func(verb, _ string) (bool, error) {
							if verb != "get" {
								writes++
							}
							if writes >= write {
								return done && writes == write, crashed
							}
							return false, nil
						})
						err := victim.look(t.Context())
						hit = writes >= write
						if hit != errors.Is(err, crashed) {
							t.Errorf("%s: %v", where, err)
						}
						if !hit && write <= test.least {
							t.Errorf("only %d writes", writes)
						}
						c.breaks(nil)
						if test.prepare != nil {
							c.trusted(other)
						}
						next := c.newReplica()
						for _, r := range []*replica{next, other, next} {
							r.mustLook(t)
							c.trusted(r)
						}
						s, damage, err := decode(c.secret().Data)
						if err != nil || len(damage) > 0 {
							t.Fatalf("%s: %v %v", where, damage, err)
						}
						if !s.leaf.Leaf.Equal(leafOf(t, other)) || !s.leaf.Leaf.Equal(leafOf(t, next)) {
							t.Errorf("%s: the replicas show different certificates", where)
						}
						if s.next != nil && s.published.IsZero() {
							t.Errorf("%s: the next CA is not called published", where)
						}
					})
				}
			}
		})
	}
}
