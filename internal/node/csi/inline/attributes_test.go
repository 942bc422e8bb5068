package inline

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/policy"
)

// testTerms promise an hour to all, and in the namespace "small" at most 1Gi.
func testTerms(t testing.TB) Terms {
	t.Helper()
	p, err := policy.Parse(policy.Bounds{Lifespan: time.Hour, MaxLifespan: time.Hour},
		[]byte("namespaces: [{match: [small], maxSizeLimit: 1Gi}]"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Terms
}

func TestAttributesBecomeTerms(t *testing.T) {
	volumes := &fakeVolumes{}
	node := csi.NewNodeClient(serveDriver(t, volumes, logr.Discard()))
	req := publishRequest()
	req.VolumeContext["csi.storage.k8s.io/pod.namespace"] = "small"
	req.VolumeContext["lifespan"], req.VolumeContext["mode"] = "90s", "0750"
	if _, err := node.NodePublishVolume(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := volume.Terms{Lifespan: 2 * time.Minute, LifespanSucceeded: 2 * time.Minute, Limit: volume.Size{Bytes: 1 << 30}, Mode: 0o750}
	if got := volumes.published[0].Terms; got != want {
		t.Errorf("terms %+v, want %+v", got, want)
	}
	if got := volumes.published[0].Cut; got != "small cuts 90s" {
		t.Errorf("cut %q", got)
	}
}

// TestRefusedAttributes: they are InvalidArgument, with the field and the nearest one, but a volume
// that is known is published all the same.
func TestRefusedAttributes(t *testing.T) {
	for _, tt := range []struct{ namespace, key, value, want string }{
		{"default", "Lifespan", "1h", `volumeAttributes["Lifespan"] is not known; did you mean lifespan?`},
		{"default", "sizeLimit", "plenty", `volumeAttributes["sizeLimit"] is "plenty", but it has to be a quantity`},
		{"small", "sizeLimit", "2Gi", `volumeAttributes["sizeLimit"] is 2Gi, but in this namespace it is at most 1Gi`},
	} {
		for _, known := range []bool{false, true} {
			node := csi.NewNodeClient(serveDriver(t, &fakeVolumes{known: known}, logr.Discard()))
			req := publishRequest()
			req.VolumeContext["csi.storage.k8s.io/pod.namespace"], req.VolumeContext[tt.key] = tt.namespace, tt.value
			_, err := node.NodePublishVolume(t.Context(), req)
			if known {
				if err != nil {
					t.Errorf("%s=%s of a known volume: %v", tt.key, tt.value, err)
				}
				continue
			}
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s=%s: %v, want InvalidArgument with %q", tt.key, tt.value, err, tt.want)
			}
		}
	}
}

// TestAttachWithoutAPolicy: a volume that is known is published again while there is no policy, so that
// what it has attached has to be told all the same. Attributes that are not acceptable tell nothing.
func TestAttachWithoutAPolicy(t *testing.T) {
	d, err := New(Config{Name: "katbox.csi.paypal.com", Version: "1.2.3", NodeID: "node-1", KubeletDir: "/var/lib/kubelet",
		Volumes: &fakeVolumes{}, Metrics: metrics.New("test", ""), Terms: func(_ string, attributes map[string]string) (volume.Terms, error) {
			if strings.HasPrefix(attributes[api.KeyAttach], "..") {
				return volume.Terms{}, volume.Invalid(policy.Field(api.KeyAttach), "is bad")
			}
			if strings.HasPrefix(attributes[api.KeyAttach], "forbidden") {
				return volume.Terms{}, volume.Invalid(policy.Field(api.KeyAttach), "is not allowed any more")
			}
			return volume.Terms{}, volume.ErrUnavailable
		}})
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]struct {
		attach volume.Place
		err    error
	}{
		"gone/data":   {volume.Place{Pod: "gone", ID: volume.KubeletID("gone", "data")}, volume.ErrUnavailable},
		"../gone/etc": {volume.Place{}, volume.ErrInvalid},
		// What is attached already stays so.
		"forbidden/data": {volume.Place{Pod: "forbidden", ID: volume.KubeletID("forbidden", "data")}, volume.ErrInvalid},
	} {
		req := publishRequest()
		req.Readonly, req.VolumeContext[api.KeyAttach] = true, value
		p, err := d.publication(req)
		if err != nil || !errors.Is(p.Refused, want.err) || p.Attach != want.attach {
			t.Errorf("%s: attach %v, refused: %v, %v", value, p.Attach, p.Refused, err)
		}
	}
}

// TestNoSecretInTheLog: whatever becomes of a publish, no secret of the request and no token of the
// pod's ServiceAccount is logged at the debug level.
func TestNoSecretInTheLog(t *testing.T) {
	const secret = "s3cr3t-of-the-pod"
	for name, volumes := range map[string]*fakeVolumes{
		"published": {}, "failed": {err: fmt.Errorf("%w: broken", volume.ErrFailed)}, "busy": {err: volume.ErrBusy}, "panic": {panics: true},
	} {
		for _, attribute := range []string{"", "password", "lifespam"} {
			var mu sync.Mutex
			var lines []string
			log := funcr.New(func(prefix, args string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, prefix+args)
			}, funcr.Options{Verbosity: 100})
			req := publishRequest()
			req.Secrets = map[string]string{"token": secret, secret: "x"}
			req.PublishContext = map[string]string{"session": secret}
			req.VolumeContext["csi.storage.k8s.io/serviceAccount.tokens"] = `{"":{"token":"` + secret + `"}}`
			if attribute != "" {
				req.VolumeContext[attribute] = secret
			}
			_, err := csi.NewNodeClient(serveDriver(t, volumes, log)).NodePublishVolume(t.Context(), req)
			mu.Lock()
			if all := strings.Join(lines, "\n"); len(lines) == 0 || strings.Contains(all, secret) ||
				strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("%s with %q: answer %v, log %s", name, attribute, err, all)
			}
			mu.Unlock()
		}
	}
}
