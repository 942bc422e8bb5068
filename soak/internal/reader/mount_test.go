package reader

import (
	"archive/tar"
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/history"
)

// TestMountIsSeen: what is in a mount belongs into no list of files and no tar. No broken driver puts it into a tar: the node's own
// handlers, which it has, leave it out.
func TestMountIsSeen(t *testing.T) {
	for name, see := range map[string]func(*person, *subject) error{
		"list": func(p *person, s *subject) error {
			return p.checkEntry(s, nil, mountName+"/a", api.Entry{Type: api.File})
		},
		"tar": func(p *person, s *subject) error {
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			if err := errors.Join(w.WriteHeader(&tar.Header{Name: mountName + "/a", Typeflag: tar.TypeReg}), w.Close()); err != nil {
				return err
			}
			return p.checkTar(t.Context(), s, time.Now(), &resumed{Reader: &archive}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := &history.Findings{}
			p, s := &person{Reader: &Reader{cfg: Config{Findings: findings}}}, &subject{volume: &history.Volume{ID: "csi-1"}}
			if err := p.checkEntry(s, nil, mountName, api.Entry{Type: api.Mount}); err != nil || findings.Sum() > 0 {
				t.Fatalf("the mount itself: %v, %+v", err, findings.All())
			}
			if err := see(p, s); !errors.Is(err, errOver) || findings.Number(history.ReadsInside) != 1 || findings.Sum() != 1 {
				t.Errorf("%v, %+v", err, findings.All())
			}
		})
	}
}
