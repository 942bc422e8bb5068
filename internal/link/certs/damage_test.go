package certs

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDamagedSecret(t *testing.T) {
	type data = map[string][]byte
	foreign := must(newAuthority(testSecret, time.Now()))
	for _, test := range []struct {
		name   string
		damage func(data)
		// sameCA: only the certificate is replaced; sameLeaf: not even that.
		sameCA, sameLeaf bool
		logged           string
	}{
		{"empty", func(d data) { clear(d) }, false, false, "the key version is missing"},
		{"no version", func(d data) { delete(d, keyVersion) }, false, false, "the key version is missing"},
		{"no CA", func(d data) { delete(d, keyCA) }, false, false, "ca.crt and ca.key are damaged"},
		{"garbage as CA", func(d data) { d[keyCA] = []byte("garbage") }, false, false, "ca.crt and ca.key are damaged"},
		{"garbage as key", func(d data) { d[keyCAKey] = []byte{0, 255} }, false, false, "ca.crt and ca.key are damaged"},
		{"key of another CA", func(d data) { d[keyCAKey] = must(encodeKey(foreign.key)) }, false, false, "ca.crt and ca.key are damaged"},
		{"no CA but a certificate", func(d data) { d[keyCA], d[keyCAKey] = d[keyCert], d[keyKey] }, false, false, "it is not a CA"},
		{"another CA", func(d data) { d[keyCA], d[keyCAKey] = encodeCerts(foreign.cert), must(encodeKey(foreign.key)) },
			false, false, "made a certificate, as the one before is not valid now"},
		{"no certificate", func(d data) { delete(d, keyCert) }, true, false, "tls.crt and tls.key are damaged"},
		{"garbage as certificate", func(d data) { d[keyCert] = []byte("garbage") }, true, false, "tls.crt and tls.key are damaged"},
		{"another key", func(d data) { d[keyKey] = d[keyCAKey] }, true, false, "tls.crt and tls.key are damaged"},
		{"garbage as next CA", func(d data) { d[keyNextCA] = []byte("garbage") }, true, true, "next-ca.crt and next-ca.key are damaged"},
		{"garbage as old CA", func(d data) { d[keyOldCAs] = []byte("garbage") }, true, true, "old-ca.crt is damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				// The foreign CA is from the time outside of the bubble, which starts in the year 2000.
				time.Sleep(time.Until(foreign.cert.NotBefore.Add(time.Hour)))
				c.newReplica().mustLook(t)
				before := c.secret().Data
				damaged := maps.Clone(before)
				test.damage(damaged)
				damaged["other"] = []byte("of a person")
				c.putSecret(damaged)
				r := c.newReplica()
				r.mustLook(t)
				c.trusted(r)
				after := c.secret()
				if got := string(after.Data[keyCA]) == string(before[keyCA]); got != test.sameCA {
					t.Errorf("the same CA: %v", got)
				}
				if got := string(after.Data[keyCert]) == string(before[keyCert]); got != test.sameLeaf {
					t.Errorf("the same certificate: %v", got)
				}
				if _, damage, err := decode(after.Data); err != nil || len(damage) > 0 {
					t.Errorf("still damaged: %v %v", damage, err)
				}
				if after.Labels["mine"] != "yes" || string(after.Data["other"]) != "of a person" {
					t.Errorf("what others wrote is gone: %v %s", after.Labels, after.Data["other"])
				}
				if !strings.Contains(r.log.String(), test.logged) {
					t.Errorf("logged %s, want %q", r.log.String(), test.logged)
				}
				if strings.Contains(r.log.String(), "PRIVATE") {
					t.Errorf("a key is in the log: %s", r.log)
				}
			})
		})
	}
}

func TestAllHasEnded(t *testing.T) {
	for _, test := range []struct {
		name   string
		after  time.Duration
		sameCA bool
		logged string
	}{
		{"the certificate", 31 * day, true, "made a certificate, as the one before is not valid now"},
		{"the CA", 366 * day, false, "made a CA and a certificate, as the CA is not valid now"},
		{"the clock was wrong", -3 * day, false, "made a CA and a certificate, as the CA is not valid now"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				now := time.Now()
				s := must(fresh(testSecret, testNames, now.Add(-test.after)))
				before := must(s.encode())
				c.putSecret(before)
				r := c.newReplica()
				r.mustLook(t)
				c.trusted(r)
				if got := string(c.secret().Data[keyCA]) == string(before[keyCA]); got != test.sameCA {
					t.Errorf("the same CA: %v", got)
				}
				if !strings.Contains(r.log.String(), test.logged) {
					t.Errorf("logged %s", r.log)
				}
			})
		})
	}
}

// TestLastDaysOfACA: the CA cannot be replaced, because the next one cannot be published.
func TestLastDaysOfACA(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.newReplica()
		r.mustLook(t)
		end := must(parseCerts(c.published()))[0].NotAfter
		time.Sleep(250 * day)
		c.breaks(func(verb, _ string) (bool, error) {
			if verb == "patch" {
				return false, errors.New("refused")
			}
			return false, nil
		})
		served := len(r.ends)
		for time.Until(end) > time.Hour {
			if err := r.look(t.Context()); err == nil {
				t.Fatal("no error")
			}
			if time.Until(end) > 5*day {
				time.Sleep(day)
			} else {
				time.Sleep(time.Hour)
			}
		}
		if n := len(r.ends) - served; n > 7 {
			t.Errorf("%d certificates in the last 115 days", n)
		}
		if leaf := leafOf(t, r); leaf.NotAfter.After(end) {
			t.Errorf("the certificate outlives its CA by %s", leaf.NotAfter.Sub(end))
		}
		// Without a CA that is valid, the next one is better than nothing.
		time.Sleep(2 * time.Hour)
		c.breaks(nil)
		r.mustLook(t)
		c.trusted(r)
		if !strings.Contains(r.log.String(), "took the next CA before all clients may know it") {
			t.Errorf("logged %s", r.log)
		}
	})
}

func TestSecretOfTheFuture(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		running := c.newReplica()
		c.run(running)
		leaf := leafOf(t, running)
		before := c.secret().Data
		before[keyVersion] = []byte("2")
		c.putSecret(before)
		c.written()
		r := c.newReplica()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := r.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start: %v", err)
		}
		synctest.Wait()
		if _, err := r.GetCertificate(nil); !errors.Is(err, errNone) {
			t.Errorf("it shows a certificate that it does not understand: %v", err)
		}
		if got := c.written(); len(got) > 0 || !reflect.DeepEqual(c.secret().Data, before) {
			t.Errorf("wrote %v", got)
		}
		if n := strings.Count(r.log.String(), "a newer version of the program has written it"); n != 1 {
			t.Errorf("logged %d times: %s", n, r.log)
		}
		if !leafOf(t, running).Equal(leaf) {
			t.Error("the replica that runs shows something else")
		}
	})
}
