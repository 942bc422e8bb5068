package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// mounted is a directory as the kubelet keeps it for a Secret.
type mounted struct {
	t         *testing.T
	directory string
	versions  int
}

// put replaces all files by one symbolic link, as the kubelet does.
func (m *mounted) put(ca authority, leaf *tls.Certificate) {
	m.t.Helper()
	m.putFiles(map[string][]byte{
		"tls.crt": encodeCerts(leaf.Leaf), "tls.key": must(encodeKey(leaf.PrivateKey)), "ca.crt": encodeCerts(ca.cert),
	})
}

func (m *mounted) putFiles(files map[string][]byte) {
	m.t.Helper()
	m.versions++
	version := fmt.Sprintf("..version-%d", m.versions)
	errs := []error{os.Mkdir(filepath.Join(m.directory, version), 0o700)}
	for name, text := range files {
		errs = append(errs, os.WriteFile(filepath.Join(m.directory, version, name), text, 0o600))
		if m.versions == 1 {
			errs = append(errs, os.Symlink(filepath.Join("..data", name), filepath.Join(m.directory, name)))
		}
	}
	errs = append(errs, os.Symlink(version, filepath.Join(m.directory, "..new")))
	errs = append(errs, os.Rename(filepath.Join(m.directory, "..new"), filepath.Join(m.directory, "..data")))
	for _, err := range errs {
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// given is a gateway with files.
type given struct {
	*Files
	log  *lines
	ends []time.Time
}

func (c *cluster) newGiven(directory string, publishing Publishing) *given {
	c.t.Helper()
	g := &given{log: new(lines)}
	var err error
	g.Files, err = NewFiles(FilesConfig{
		Program: testSecret, Directory: directory, Publishing: publishing, Log: g.log.logger(),
		Ends: func(end time.Time) { g.ends = append(g.ends, end) },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

func (c *cluster) runGiven(g *given) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(func() {
		cancel()
		g.Wait()
	})
	if err := g.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
}

func TestFilesAreReadAgain(t *testing.T) {
	directory := t.TempDir()
	inBubble(t, func(t *testing.T, c *cluster) {
		m := &mounted{t: t, directory: directory}
		ca := must(newAuthority(testSecret, time.Now()))
		first := must(ca.issue(testNames, time.Now()))
		m.put(ca, first)
		g := c.newGiven(directory, c.publishing())
		if _, err := g.GetCertificate(nil); err == nil {
			t.Error("a certificate before Start")
		}
		c.runGiven(g)
		c.trusted(g)
		if !leafOf(t, g).Equal(first.Leaf) || len(g.ends) != 1 {
			t.Errorf("another certificate; ends %v", g.ends)
		}
		second := must(ca.issue(testNames, time.Now()))
		m.put(ca, second)
		time.Sleep(13 * time.Second)
		synctest.Wait()
		if !leafOf(t, g).Equal(second.Leaf) || len(g.ends) != 2 {
			t.Errorf("not read again; ends %v", g.ends)
		}
		// Another CA is published beside the one before, which other replicas may still use.
		another := must(newAuthority(testSecret, time.Now()))
		m.put(another, must(another.issue(testNames, time.Now())))
		time.Sleep(13 * time.Second)
		synctest.Wait()
		c.trusted(g)
		if n := len(subjectSet(c.caBundle())); n != 2 {
			t.Errorf("%d CAs are published", n)
		}
		time.Sleep(overlap + 13*time.Second)
		synctest.Wait()
		c.trusted(g)
		if n := len(subjectSet(c.caBundle())); n != 1 {
			t.Errorf("%d CAs are published after 10 min", n)
		}
	})
}

func TestDamagedFilesChangeNothing(t *testing.T) {
	directory := t.TempDir()
	inBubble(t, func(t *testing.T, c *cluster) {
		m := &mounted{t: t, directory: directory}
		ca := must(newAuthority(testSecret, time.Now()))
		good := must(ca.issue(testNames, time.Now()))
		m.put(ca, good)
		g := c.newGiven(directory, c.publishing())
		c.runGiven(g)
		files := map[string][]byte{
			"tls.crt": encodeCerts(must(ca.issue(testNames, time.Now())).Leaf),
			"tls.key": must(encodeKey(good.PrivateKey)),
			"ca.crt":  encodeCerts(ca.cert),
		}
		m.putFiles(files)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !leafOf(t, g).Equal(good.Leaf) {
			t.Error("a certificate without its key")
		}
		if n := strings.Count(g.log.String(), "are no certificate and its key"); n != 1 {
			t.Errorf("logged %d times: %s", n, g.log)
		}
		files["tls.crt"], files["ca.crt"] = encodeCerts(good.Leaf), []byte("garbage")
		m.putFiles(files)
		// The CA that was read before is kept in its places all the same.
		c.put(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(g.log.String(), "ca.crt is no CA") {
			t.Errorf("logged %s", g.log)
		}
		c.trusted(g)
		next := must(ca.issue(testNames, time.Now()))
		m.put(ca, next)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !leafOf(t, g).Equal(next.Leaf) {
			t.Error("not read again after the damage")
		}
	})
}

func TestFilesAtTheStart(t *testing.T) {
	c := newCluster(t)
	ca := must(newAuthority(testSecret, time.Now()))
	leaf := must(ca.issue(testNames, time.Now()))
	cert, key := encodeCerts(leaf.Leaf), must(encodeKey(leaf.PrivateKey))
	for _, test := range []struct {
		name       string
		files      map[string][]byte
		publishing Publishing
		want       string
	}{
		{"nothing", map[string][]byte{}, Publishing{}, "tls.crt: no such file"},
		{"no key", map[string][]byte{"tls.crt": cert}, Publishing{}, "tls.key: no such file"},
		{"garbage", map[string][]byte{"tls.crt": cert, "tls.key": []byte("x")}, Publishing{}, "are no certificate and its key"},
		{"without a CA, which nobody needs", map[string][]byte{"tls.crt": cert, "tls.key": key}, Publishing{}, ""},
		{"no CA", map[string][]byte{"tls.crt": cert, "tls.key": key}, c.publishing(), "ca.crt: no such file"},
		{"empty CA", map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": nil}, c.publishing(), "ca.crt is no CA: it is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory := t.TempDir()
			for name, text := range test.files {
				if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			g := c.newGiven(directory, test.publishing)
			ctx, cancel := context.WithCancel(t.Context())
			defer g.Wait()
			defer cancel()
			err := g.Start(ctx)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if got := c.written(); len(got) > 0 {
				t.Errorf("wrote %v", got)
			}
		})
	}
}

// TestReplicasWithDifferentFiles: the kubelets of two nodes refresh a Secret a minute apart. Neither
// replica takes the other's CA from those who need it.
func TestReplicasWithDifferentFiles(t *testing.T) {
	directories := []string{t.TempDir(), t.TempDir()}
	inBubble(t, func(t *testing.T, c *cluster) {
		before, after := must(newAuthority(testSecret, time.Now())), must(newAuthority(testSecret, time.Now()))
		a := &mounted{t: t, directory: directories[0]}
		b := &mounted{t: t, directory: directories[1]}
		leaf := must(before.issue(testNames, time.Now()))
		a.put(before, leaf)
		b.put(before, leaf)
		first, second := c.newGiven(a.directory, c.publishing()), c.newGiven(b.directory, c.publishing())
		c.runGiven(first)
		c.runGiven(second)
		next := must(after.issue(testNames, time.Now()))
		a.put(after, next)
		for range 6 {
			time.Sleep(13 * time.Second)
			synctest.Wait()
			c.trusted(first)
			c.trusted(second)
		}
		b.put(after, next)
		time.Sleep(2 * overlap)
		synctest.Wait()
		c.trusted(first)
		c.trusted(second)
		if n := len(subjectSet(c.caBundle())); n != 1 {
			t.Errorf("%d CAs are published", n)
		}
	})
}
