package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

const day = 24 * time.Hour

func TestFirstStart(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.newReplica()
		if _, err := r.GetCertificate(nil); !errors.Is(err, errNone) {
			t.Errorf("before Start: %v", err)
		}
		began := time.Now()
		c.run(r)
		c.trusted(r)
		leaf := leafOf(t, r)
		if key, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
			t.Errorf("its key is %T", leaf.PublicKey)
		}
		if !leaf.NotBefore.Equal(began.Add(-time.Hour)) || !leaf.NotAfter.Equal(began.Add(30*day)) || !slices.Equal(leaf.DNSNames, testNames) ||
			leaf.IsCA || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
			t.Errorf("from %s to %s for %v", leaf.NotBefore, leaf.NotAfter, leaf.DNSNames)
		}
		ca := must(parseCerts(c.published()))[0]
		if !ca.NotBefore.Equal(began.Add(-time.Hour)) || !ca.NotAfter.Equal(began.Add(365*day)) || !ca.IsCA || !ca.MaxPathLenZero {
			t.Errorf("the CA is from %s to %s", ca.NotBefore, ca.NotAfter)
		}
		if !slices.EqualFunc(r.ends, []time.Time{leaf.NotAfter}, time.Time.Equal) {
			t.Errorf("Ends was called with %v", r.ends)
		}
		if err := connect(r, c.published(), "other.katbox.svc"); err == nil {
			t.Error("it is for any name")
		}
		if got, want := c.written(), []string{"create secrets", "create configmaps", "patch apiservices"}; !slices.Equal(got, want) {
			t.Errorf("wrote %v, want %v", got, want)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := c.written(); len(got) > 0 {
			t.Errorf("wrote %v in an hour without need", got)
		}
	})
}

func TestRenewalOfTheCertificate(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.newReplica()
		r.looks.interval = time.Hour
		c.run(r)
		before, ca := leafOf(t, r), c.published()
		time.Sleep(20*day - 3*time.Hour)
		if !leafOf(t, r).Equal(before) {
			t.Error("renewed before two thirds of its life")
		}
		// 2 % of the life is jitter.
		time.Sleep(20 * time.Hour)
		synctest.Wait()
		after := leafOf(t, r)
		if after.Equal(before) || len(r.ends) != 2 {
			t.Errorf("not renewed; ends %v", r.ends)
		}
		if !bytes.Equal(c.published(), ca) {
			t.Error("the CA has changed")
		}
		c.trusted(r)
	})
}

// TestYears lets two replicas run for three years. A client that knows a CA as it was published
// 3 min ago can connect at any time.
func TestYears(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a, b := c.newReplica(), c.newReplica()
		a.mustLook(t)
		b.mustLook(t)
		since := make(map[string]time.Time)
		check := func() {
			nodes, server := must(parseCerts(c.published())), must(parseCerts(c.caBundle()))
			for _, ca := range server {
				if _, seen := since[ca.Subject.CommonName]; !seen {
					since[ca.Subject.CommonName] = time.Now()
				}
			}
			time.Sleep(3 * time.Minute)
			for _, r := range []*replica{b, a} {
				r.mustLook(t)
				for _, roots := range [][]*x509.Certificate{nodes, server} {
					if err := verify(must(r.GetCertificate(nil)), roots, testNames[0], time.Now()); err != nil {
						t.Fatalf("at %s: %v", time.Now(), err)
					}
				}
			}
			if leaf := leafOf(t, a); time.Until(leaf.NotAfter) < 6*day {
				t.Fatalf("at %s the certificate ends at %s", time.Now(), leaf.NotAfter)
			}
			if n := len(must(parseCerts(c.published()))); n > 3 {
				t.Fatalf("at %s %d CAs are published", time.Now(), n)
			}
		}
		for end := time.Now().Add(3 * 365 * day); time.Now().Before(end); time.Sleep(3 * day) {
			check()
			// While a CA waits, every 3 min.
			for c.secret().Data[keyNextCA] != nil {
				issuer := leafOf(t, a).Issuer.CommonName
				check()
				if after := leafOf(t, a).Issuer.CommonName; after != issuer && time.Since(since[after]) < overlap {
					t.Errorf("%s signs %s after it was published", after, time.Since(since[after]))
				}
			}
		}
		if len(since) != 5 {
			t.Errorf("%d CAs in three years", len(since))
		}
	})
}

func TestNotPublishedNotUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.newReplica()
		r.mustLook(t)
		time.Sleep(260 * day)
		refused := errors.New("refused")
		c.breaks(func(verb, _ string) (bool, error) {
			if verb == "patch" {
				return false, refused
			}
			return false, nil
		})
		issuer := leafOf(t, r).Issuer.CommonName
		for range 10 {
			if err := r.look(t.Context()); !errors.Is(err, refused) {
				t.Fatal(err)
			}
			if leafOf(t, r).Issuer.CommonName != issuer {
				t.Fatal("a CA signs that the API server does not know")
			}
			time.Sleep(day)
		}
		c.breaks(nil)
		r.mustLook(t)
		time.Sleep(overlap - time.Second)
		r.mustLook(t)
		if leafOf(t, r).Issuer.CommonName != issuer {
			t.Error("the new CA signs too early")
		}
		time.Sleep(2 * time.Second)
		r.mustLook(t)
		if leafOf(t, r).Issuer.CommonName == issuer {
			t.Error("the new CA does not sign")
		}
		c.trusted(r)
	})
}

// TestReplicaCutOff: a replica that has not heard of the new CA shows its certificate as long as that
// is good, and clients go on to trust it.
func TestReplicaCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r, cutOff := c.newReplica(), c.newReplica()
		r.jitter = 0
		r.mustLook(t)
		r.age(t)
		cutOff.mustLook(t)
		issuer := leafOf(t, cutOff).Issuer.CommonName
		for range 20 {
			r.mustLook(t)
			c.trusted(r)
			c.trusted(cutOff)
			time.Sleep(day)
		}
		if leafOf(t, r).Issuer.CommonName == issuer || leafOf(t, cutOff).Issuer.CommonName != issuer {
			t.Error("the CA was not replaced")
		}
		// When it has ended, nobody has to trust it.
		for range 10 {
			time.Sleep(15 * day)
			r.mustLook(t)
		}
		if n := len(subjectSet(c.published())); n != 1 {
			t.Errorf("%d CAs are published", n)
		}
	})
}

func TestAPIServerAway(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		away := errors.New("connection refused")
		c.breaks(always(away))
		r := c.newReplica()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start: %v", err)
		}
		if n := strings.Count(r.log.String(), "connection refused"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		back := time.AfterFunc(time.Minute, func() { c.breaks(nil) })
		defer back.Stop()
		c.run(r)
		c.trusted(r)
		leaf := leafOf(t, r)
		c.breaks(always(away))
		time.Sleep(time.Hour)
		synctest.Wait()
		if !leafOf(t, r).Equal(leaf) {
			t.Error("it does not show what it has")
		}
		c.breaks(nil)
	})
}

func TestChangedNames(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		before := c.newReplica("old.katbox.svc")
		before.mustLook(t)
		after := c.newReplica()
		after.mustLook(t)
		c.trusted(after)
		c.written()
		// During an update both are there, and neither takes the other's names away.
		for range 3 {
			time.Sleep(lookEvery)
			before.mustLook(t)
			after.mustLook(t)
		}
		if got := c.written(); len(got) > 0 {
			t.Errorf("they wrote %v", got)
		}
		if err := connect(before, c.published(), "old.katbox.svc"); err != nil {
			t.Error(err)
		}
		time.Sleep(21 * day)
		after.mustLook(t)
		if names := leafOf(t, after).DNSNames; !slices.Equal(names, testNames) {
			t.Errorf("renewed for %v", names)
		}
	})
}

func TestReplicasRenewAtDifferentTimes(t *testing.T) {
	c := newCluster(t)
	seen := make(map[float64]bool)
	for range 100 {
		r := must(NewBuiltin(c.newReplica().cfg))
		if r.jitter < 0 || r.jitter >= jitterMost {
			t.Errorf("jitter %v", r.jitter)
		}
		seen[r.jitter] = true
	}
	if len(seen) < 2 {
		t.Error("all renew at the same time")
	}
}

func TestMissingFields(t *testing.T) {
	c := newCluster(t)
	good := BuiltinConfig{Program: "p", Client: c.core, Namespace: "n", Secret: "s", Names: testNames,
		Ends: func(time.Time) {}, Log: new(lines).logger()}
	files := FilesConfig{Program: "p", Directory: "d", Ends: good.Ends, Log: good.Log}
	if _, err := NewBuiltin(good); err != nil {
		t.Error(err)
	}
	if _, err := NewFiles(files); err != nil {
		t.Error(err)
	}
	builtin := func(change func(*BuiltinConfig)) error {
		cfg := good
		change(&cfg)
		_, err := NewBuiltin(cfg)
		return err
	}
	from := func(change func(*FilesConfig)) error {
		cfg := files
		change(&cfg)
		_, err := NewFiles(cfg)
		return err
	}
	for want, err := range map[string]error{
		"BuiltinConfig.Program":   builtin(func(cfg *BuiltinConfig) { cfg.Program = "" }),
		"FilesConfig.Program":     from(func(cfg *FilesConfig) { cfg.Program = "" }),
		"BuiltinConfig.Client":    builtin(func(cfg *BuiltinConfig) { cfg.Client = nil }),
		"BuiltinConfig.Namespace": builtin(func(cfg *BuiltinConfig) { cfg.Namespace = "" }),
		"BuiltinConfig.Secret":    builtin(func(cfg *BuiltinConfig) { cfg.Secret = "" }),
		"BuiltinConfig.Names":     builtin(func(cfg *BuiltinConfig) { cfg.Names = nil }),
		"BuiltinConfig.Ends":      builtin(func(cfg *BuiltinConfig) { cfg.Ends = nil }),
		"BuiltinConfig.Log":       builtin(func(cfg *BuiltinConfig) { cfg.Log = logr.Logger{} }),
		"Publishing.Client":       builtin(func(cfg *BuiltinConfig) { cfg.Publishing = Publishing{ConfigMap: "c", Namespace: "n"} }),
		"Publishing.Namespace":    from(func(cfg *FilesConfig) { cfg.Publishing = Publishing{ConfigMap: "c", Client: c.core} }),
		"Publishing.Dynamic":      from(func(cfg *FilesConfig) { cfg.Publishing = Publishing{APIService: "a"} }),
		"FilesConfig.Directory":   from(func(cfg *FilesConfig) { cfg.Directory = "" }),
		"FilesConfig.Ends":        from(func(cfg *FilesConfig) { cfg.Ends = nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), want+" is missing") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
