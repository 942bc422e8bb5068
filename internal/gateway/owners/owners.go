package owners

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// Config is what Owners need.
type Config struct {
	// Pods reads pods of all namespaces. The client should not have a limit of its own.
	Pods       client.PodsGetter
	Namespaces Namespaces
	// Metrics may be nil.
	Metrics *gatewaymetrics.Metrics
	// Log may be the zero Logger.
	Log logr.Logger
}

// Namespaces knows the namespaces as they are now.
type Namespaces interface {
	// Lookup returns the namespace with that name; false if there is none.
	Lookup(ctx context.Context, namespace string) (volume.Tenancy, bool, error)
}

const (
	// readsPerSecond bounds how many pods are read.
	readsPerSecond = 200
	readsBurst     = 50
	// readsAtOnce bounds how many pods are in memory while they are read: each may have several MiB.
	readsAtOnce = 16
	// mostFacts and mostDenials bound what is remembered, mostFactBytes and mostDenialBytes about how much
	// memory that takes. Most facts take some 600 bytes, and those of a pod with long texts 2 KiB.
	mostFacts       = 40_000
	mostFactBytes   = 32 << 20
	mostDenials     = 10_000
	mostDenialBytes = 4 << 20
	// entryBytes is about what an entry of a memory takes beside its texts.
	entryBytes = 400
	// mostUID bounds the UID of a pod.
	mostUID = 128
)

// Owners finds out whose volumes are.
type Owners struct {
	Config
	reads *rate.Limiter
	// reading has a place for each pod that may be read at once.
	reading chan struct{}
	// complaints bounds lines in the log.
	complaints *rate.Limiter
	facts      *memory[identity, fact]
	denials    *memory[question, struct{}]
	// ended are pods that have ended.
	ended *memory[identity, ended]
}

// fact is what the API server said about a pod.
type fact struct {
	namespace, pod, node string
	owner                volume.Owner
}

// identity is what a fact is known by. The UID that the API server has given to a pod is that of one
// pod. That of a static pod is an annotation, which a node may write as it likes: it says something of
// the volumes on that node alone, and node is then set.
type identity struct{ podUID, node string }

// question is what a node asks.
type question struct{ node, namespace, pod, podUID string }

// factBytes is about how much memory a fact takes.
func factBytes(i identity, f fact) int {
	o := f.owner
	return entryBytes + len(i.podUID) + len(i.node) + len(f.namespace) + len(f.pod) + len(f.node) +
		len(o.NamespaceUID) + len(o.Kind) + len(o.Name) + len(o.UID) + len(o.Job) + len(o.JobIndex)
}

// denialBytes is about how much memory a denial takes.
func denialBytes(q question, _ struct{}) int {
	return entryBytes + len(q.node) + len(q.namespace) + len(q.pod) + len(q.podUID)
}

// New returns Owners that remember nothing.
func New(c Config) (*Owners, error) {
	if c.Pods == nil || c.Namespaces == nil {
		return nil, errors.New("owners: Config.Pods and Config.Namespaces are required")
	}
	return &Owners{
		Config: c, reads: rate.NewLimiter(readsPerSecond, readsBurst), complaints: rate.NewLimiter(rate.Limit(1)/10, 1),
		reading: make(chan struct{}, readsAtOnce),
		facts:   newMemory(mostFacts, mostFactBytes, factBytes), denials: newMemory(mostDenials, mostDenialBytes, denialBytes),
		ended: newMemory(mostFacts, mostFactBytes, endedBytes),
	}, nil
}

// Ask answers what a node asks, as far as the answers are known when ctx ends. A question without an
// answer is asked again by the node.
func (o *Owners) Ask(ctx context.Context, node string, asks []api.OwnerAsk) []api.OwnerAnswer {
	answers := make([]api.OwnerAnswer, 0, len(asks))
	for _, a := range asks {
		owner, err := o.ask(ctx, question{node, a.Namespace, a.Pod, a.PodUID})
		if err != nil {
			if ctx.Err() == nil && o.complaints.Allow() {
				o.Log.Info("cannot find the owner of a volume; its node will ask again",
					logkeys.Node, node, logkeys.Namespace, a.Namespace, logkeys.Pod, a.Pod, logkeys.Cause, err.Error())
			}
			continue
		}
		answers = append(answers, api.OwnerAnswer{ID: a.ID, PodUID: a.PodUID, Owner: inWords(owner)})
	}
	return answers
}

// ask answers one question. An error says that there is no answer now.
func (o *Owners) ask(ctx context.Context, q question) (volume.Owner, error) {
	denied := volume.Owner{Verdict: volume.Denied}
	if !q.valid() {
		return denied, nil
	}
	if f, ok := o.known(q.podUID, q.node); ok {
		return f.about(q), nil
	}
	if _, ok := o.denials.get(q); ok {
		return denied, nil
	}
	f, found, err := o.find(ctx, q)
	switch {
	case errors.Is(err, errGone):
		o.Metrics.PodLookedUp(gatewaymetrics.Gone)
		o.denials.put(q, struct{}{})
		return denied, nil
	case err != nil:
		o.Metrics.PodLookedUp(gatewaymetrics.Failed)
		return volume.Owner{}, err
	}
	if found.static {
		o.facts.put(identity{q.podUID, f.node}, f)
	} else {
		o.facts.put(identity{podUID: q.podUID}, f)
	}
	owner := f.about(q)
	switch {
	case owner.Verdict != volume.Confirmed:
		o.Metrics.PodLookedUp(gatewaymetrics.Contradicted)
	case found.seen:
		o.Metrics.PodLookedUp(gatewaymetrics.Seen)
	default:
		o.Metrics.PodLookedUp(gatewaymetrics.Found)
	}
	return owner, nil
}

// valid reports whether there may be such a pod. What is no name would lead the client elsewhere.
func (q question) valid() bool {
	return len(validation.IsDNS1123Label(q.namespace)) == 0 && len(validation.IsDNS1123Subdomain(q.pod)) == 0 &&
		q.podUID != "" && len(q.podUID) <= mostUID
}

// errGone: there is no pod with that UID.
var errGone = errors.New("the pod is gone")

// how is how a fact was found. static: the UID is that of a static pod. seen: the watch of pods that end has shown it.
type how struct{ static, seen bool }

// find finds a pod, without a request to the API server if it has ended before its question has its turn.
func (o *Owners) find(ctx context.Context, q question) (fact, how, error) {
	if f, ok, err := o.hasEnded(ctx, q); ok || err != nil {
		return f, how{seen: true}, err
	}
	if err := o.reads.Wait(ctx); err != nil {
		return fact{}, how{}, fmt.Errorf("wait for a turn to read pod %s/%s: %w", q.namespace, q.pod, err)
	}
	select {
	case o.reading <- struct{}{}:
		defer func() { <-o.reading }()
	case <-ctx.Done():
		return fact{}, how{}, fmt.Errorf("wait for a turn to read pod %s/%s: %w", q.namespace, q.pod, ctx.Err())
	}
	if f, ok, err := o.hasEnded(ctx, q); ok || err != nil {
		return f, how{seen: true}, err
	}
	f, static, err := o.read(ctx, q)
	if !errors.Is(err, errGone) {
		return f, how{static: static}, err
	}
	f, static, ok, err := o.wasSeen(ctx, q)
	if err == nil && !ok {
		err = errGone
	}
	return f, how{static: static, seen: true}, err
}

// read asks the API server about a pod. static: the UID is that of a static pod.
func (o *Owners) read(ctx context.Context, q question) (f fact, static bool, err error) {
	before, ok, err := o.Namespaces.Lookup(ctx, q.namespace)
	if err != nil {
		return fact{}, false, err
	}
	pod, err := o.Pods.Pods(q.namespace).Get(ctx, q.pod, meta.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fact{}, false, errGone
	case err != nil:
		return fact{}, false, fmt.Errorf("read pod %s/%s: %w", q.namespace, q.pod, err)
	case !is(pod, q.podUID):
		return fact{}, false, errGone
	}
	// A pod of a namespace that was deleted, and made again while the pod was read, must not be taken
	// for one of the new namespace.
	after, stillOK, err := o.Namespaces.Lookup(ctx, q.namespace)
	if err != nil {
		return fact{}, false, err
	}
	if !ok || !stillOK || before.UID != after.UID || after.UID == "" {
		return fact{}, false, fmt.Errorf("namespace %s is being made or deleted", q.namespace)
	}
	f = fact{namespace: q.namespace, pod: q.pod, node: pod.Spec.NodeName, owner: ownerOf(pod, after.UID)}
	return f, string(pod.UID) != q.podUID, nil
}

// known returns what is remembered of the pod that a node calls by that UID.
func (o *Owners) known(podUID, node string) (fact, bool) {
	if f, ok := o.facts.get(identity{podUID: podUID}); ok {
		return f, true
	}
	return o.facts.get(identity{podUID, node})
}

// is reports whether the kubelet calls the pod by that UID. That of a static pod is in an annotation
// of its mirror at the API server.
func is(pod *core.Pod, uid string) bool {
	return string(pod.UID) == uid || pod.Annotations[core.MirrorPodAnnotationKey] == uid
}

// ownerOf returns the owner of a pod. The user who creates the pod writes these texts, most of them as long as
// they like: what no object is called, or no kind of object, is left out.
func ownerOf(pod *core.Pod, namespaceUID string) volume.Owner {
	owner := volume.Owner{
		Verdict: volume.Confirmed, NamespaceUID: namespaceUID,
		Job:      volume.OwnerText(cmp.Or(pod.Labels[jobLabel], pod.Labels[oldJobLabel])),
		JobIndex: volume.OwnerText(pod.Annotations[indexAnnotation]),
	}
	if c := meta.GetControllerOf(pod); c != nil {
		kind, name, uid := volume.OwnerText(c.Kind), volume.OwnerText(c.Name), volume.OwnerText(string(c.UID))
		if kind != "" && name != "" && uid != "" {
			owner.Kind, owner.Name, owner.UID = kind, name, uid
		}
	}
	return owner
}

// The labels and the annotation of a Job's pods. Before 1.27 the label had no prefix.
const (
	jobLabel        = "batch.kubernetes.io/job-name"
	oldJobLabel     = "job-name"
	indexAnnotation = "batch.kubernetes.io/job-completion-index"
)

// about returns the owner of the volume of a question: none, if the pod is another one, or is on
// another node.
func (f fact) about(q question) volume.Owner {
	if f.namespace != q.namespace || f.pod != q.pod || f.node != q.node {
		return volume.Owner{Verdict: volume.Denied}
	}
	return f.owner
}

// Verdict returns whose the volumes are that a node has of the pod with that UID, if the API server's
// word about the pod is remembered. It beats what the node says: for another node than the pod's it is
// Denied.
func (o *Owners) Verdict(podUID, node string) (api.Owner, bool) {
	f, ok := o.known(podUID, node)
	if !ok {
		return api.Owner{}, false
	}
	return inWords(f.about(question{node, f.namespace, f.pod, podUID})), true
}

func inWords(o volume.Owner) api.Owner {
	return api.Owner{
		Verdict: o.Verdict.String(), NamespaceUID: o.NamespaceUID, Kind: o.Kind, Name: o.Name, UID: o.UID, Job: o.Job, JobIndex: o.JobIndex,
	}
}
