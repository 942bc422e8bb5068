package nodehold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/link/hub"
)

// cluster plays the API server and the nodes.
type cluster struct {
	patching sync.Mutex
	mu       sync.Mutex
	nodes    map[string]*meta.PartialObjectMetadata
	version  int
	waiting  map[string]hub.Waiting
	// down is what the API server answers; before is called before a patch, refused are Nodes that take none.
	down    error
	refused map[string]error
	before  func()
	writes  int
	reads   int
	log     []string
	metrics *gatewaymetrics.Metrics
}

func newCluster(nodes ...string) *cluster {
	c := &cluster{
		nodes: map[string]*meta.PartialObjectMetadata{}, waiting: map[string]hub.Waiting{}, metrics: gatewaymetrics.New("v", "r"),
	}
	c.metrics.Holds()
	for _, name := range nodes {
		c.annotate(name, nil)
	}
	return c
}

// annotate makes a Node, or gives it annotations, as an administrator does. The value "-" removes one.
func (c *cluster) annotate(name string, annotations map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	node := &meta.PartialObjectMetadata{ObjectMeta: meta.ObjectMeta{Name: name, UID: "u-" + types.UID(name), Annotations: map[string]string{}}}
	if old := c.nodes[name]; old != nil {
		node = old.DeepCopy()
	}
	maps.Copy(node.Annotations, annotations)
	maps.DeleteFunc(node.Annotations, func(_, value string) bool { return value == "-" })
	c.version++
	node.ResourceVersion = fmt.Sprint(c.version)
	c.nodes[name] = node
}

// delete deletes a Node.
func (c *cluster) delete(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, name)
}

// wait has a node say how many volumes wait, the last of which was retained now.
func (c *cluster) wait(name string, volumes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[name] = hub.Waiting{Node: name, Volumes: volumes, Newest: time.Now()}
}

// away has a node say nothing any more.
func (c *cluster) away(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, name)
}

// answers has the API server answer all requests with an error, or none.
func (c *cluster) answers(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

func notFound(name string) error { return apierrors.NewNotFound(Resource.GroupResource(), name) }

func (c *cluster) Get(_ context.Context, name string, _ meta.GetOptions, _ ...string) (*meta.PartialObjectMetadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	switch node := c.nodes[name]; {
	case c.down != nil:
		return nil, c.down
	case node == nil:
		return nil, notFound(name)
	default:
		return node.DeepCopy(), nil
	}
}

// List returns one Node on each page.
func (c *cluster) List(_ context.Context, o meta.ListOptions) (*meta.PartialObjectMetadataList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return nil, c.down
	}
	var names []string
	for name := range c.nodes {
		if name > o.Continue {
			names = append(names, name)
		}
	}
	list := &meta.PartialObjectMetadataList{}
	for _, name := range names {
		if len(list.Items) == 0 || name < list.Items[0].Name {
			list.Items = []meta.PartialObjectMetadata{*c.nodes[name].DeepCopy()}
		}
	}
	if len(names) > 1 {
		list.Continue = list.Items[0].Name
	}
	return list, nil
}

func (c *cluster) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ meta.PatchOptions, _ ...string,
) (*meta.PartialObjectMetadata, error) {
	var patch struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
			Annotations     map[string]*string
		}
	}
	if err := json.Unmarshal(data, &patch); err != nil || kind != types.MergePatchType {
		return nil, fmt.Errorf("patch %s: %w", kind, err)
	}
	c.mu.Lock()
	before := c.before
	c.before = nil
	c.mu.Unlock()
	if before != nil {
		before()
	}
	c.patching.Lock() // what was compared is what is changed
	defer c.patching.Unlock()
	c.mu.Lock()
	node, down := c.nodes[name], c.down
	c.mu.Unlock()
	switch m := patch.Metadata; {
	case down != nil:
		return nil, down
	case c.refused[name] != nil:
		return nil, c.refused[name]
	case node == nil:
		return nil, notFound(name)
	case m.UID != node.UID || m.ResourceVersion != node.ResourceVersion:
		return nil, apierrors.NewConflict(Resource.GroupResource(), name, errors.New("it was changed"))
	}
	annotations := map[string]string{}
	for key, value := range patch.Metadata.Annotations {
		if annotations[key] = "-"; value != nil {
			annotations[key] = *value
		}
	}
	c.annotate(name, annotations)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	return c.nodes[name], nil
}

func (c *cluster) heard() (all []hub.Waiting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		all = append(all, w)
	}
	return all
}

func (c *cluster) config() Config {
	return Config{Nodes: c, Waiting: c.heard, Metrics: c.metrics, Log: funcr.New(func(_, line string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log = append(c.log, line)
	}, funcr.Options{})}
}

// start starts a replica. It returns what stops it, which happens at the end of the test at the latest.
func (c *cluster) start(t *testing.T) (stop func()) {
	t.Helper()
	h, err := New(c.config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.Start(ctx)
	stop = sync.OnceFunc(func() { cancel(); h.Wait() })
	t.Cleanup(stop)
	return stop
}

// has returns the annotations of a Node, each as a word: scale, disrupt, mark; and a value that is not "true".
func (c *cluster) has(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for _, one := range [][2]string{{ScaleDownDisabled, "scale"}, {DoNotDisrupt, "disrupt"}, {Marker, "mark"}} {
		switch value, there := c.nodes[name].Annotations[one[0]]; {
		case there && (value == Set || one[0] == Marker):
			words = append(words, one[1])
		case there:
			words = append(words, one[1]+"="+value)
		}
	}
	return strings.Join(words, " ")
}

// after lets time pass, and compares what a Node has.
func (c *cluster) after(t *testing.T, d time.Duration, name, want string) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if has := c.has(name); has != want {
		t.Errorf("%s has the annotations %q, want %q", name, has, want)
	}
}

const allHeld = "scale disrupt mark"
