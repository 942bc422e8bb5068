package uploads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// signedFor is how long a URL is good.
	signedFor = 5 * time.Minute
	// atOnce bounds the asks that wait for the bucket, of all nodes.
	atOnce = 32
	// fresh is how old an object may be that is not uploaded again. Pieces without an index are deleted after [Abandoned]: what
	// is fresh when an index is asked for is there when that has arrived.
	fresh = Abandoned / 2
	// oldest is how old the newest piece of an index may be.
	oldest = Abandoned - 2*time.Hour
	// most past and most ahead bound when a volume was retained.
	mostPast, mostAhead = 10 * 365 * 24 * time.Hour, 24 * time.Hour
)

// Abandoned is after how long pieces are deleted that have no index.
const Abandoned = 24 * time.Hour

// Config is what Uploads work with. All fields but Metrics and Log are required.
type Config struct {
	Bucket Bucket
	// Cluster returns the UID of the cluster.
	Cluster func() (string, error)
	Owners  Owners
	// Indexes finds the index of a volume that is in the bucket.
	Indexes Indexes
	// Key seals owners. It is the same in all replicas.
	Key []byte
	// Lifespan is how long an archive is kept.
	Lifespan time.Duration
	Metrics  *gatewaymetrics.Metrics
	Log      logr.Logger
}

// Bucket is where archives are. [bucket.Bucket] is one.
type Bucket interface {
	List(ctx context.Context, q bucket.Query) (bucket.Page, error)
	Head(ctx context.Context, key string) (bucket.Object, error)
	SignPut(key string, length int64, sha256 string, expires time.Duration) (bucket.Upload, error)
}

// Indexes finds indexes.
type Indexes interface {
	// Indexes returns the volume as the keys of its indexes show it, and those keys: of what was retained about then, or with a zero
	// time of all. More than one is an exception.
	Indexes(ctx context.Context, namespaceUID string, id volume.ID, retained time.Time) ([]api.Volume, error)
	// Forget deletes an index that Indexes returned.
	Forget(ctx context.Context, v api.Volume) error
	// Expect takes note that the namespace with that UID will have an index.
	Expect(namespaceUID string)
}

// Uploads signs what nodes may upload. Its methods may be called from several goroutines.
type Uploads struct {
	cfg   Config
	slots chan struct{}
	// complaints bounds lines in the log.
	complaints *rate.Limiter
	now        func() time.Time
}

// New returns Uploads.
func New(c Config) (*Uploads, error) {
	for name, missing := range map[string]bool{
		"Bucket": c.Bucket == nil, "Cluster": c.Cluster == nil, "Owners": c.Owners == nil, "Indexes": c.Indexes == nil,
		"Key": len(c.Key) == 0, "Lifespan": c.Lifespan <= 0,
	} {
		if missing {
			return nil, fmt.Errorf("uploads: Config.%s is missing", name)
		}
	}
	return &Uploads{cfg: c, slots: make(chan struct{}, atOnce), complaints: rate.NewLimiter(rate.Limit(1)/10, 1), now: time.Now}, nil
}

// errLater: there is no answer now.
var errLater = errors.New("ask again")

// Sign answers what a node wants to upload, as far as the answers are known when ctx ends.
func (u *Uploads) Sign(ctx context.Context, node string, asks []api.UploadAsk) []api.UploadAnswer {
	answers := make([]api.UploadAnswer, 0, len(asks))
	for i := range asks {
		select {
		case u.slots <- struct{}{}:
		case <-ctx.Done():
			return answers
		}
		answers = append(answers, u.answer(ctx, node, &asks[i]))
		<-u.slots
	}
	return answers
}

// answer answers one ask.
func (u *Uploads) answer(ctx context.Context, node string, a *api.UploadAsk) api.UploadAnswer {
	answer := api.UploadAnswer{ID: a.ID, Number: a.Number()}
	var err error
	switch {
	case a.Piece != nil && a.Index == nil:
		answer.SHA256 = a.Piece.SHA256
		err = u.piece(ctx, node, a, &answer)
	case a.Index != nil && a.Piece == nil:
		answer.SHA256 = a.Index.SHA256
		err = u.index(ctx, node, a, &answer)
	default:
		err = errors.New("it asks neither for a piece nor for an index")
	}
	switch {
	case err == nil && answer.There:
		u.cfg.Metrics.UploadSigned(gatewaymetrics.There)
	case err == nil:
		u.cfg.Metrics.UploadSigned(gatewaymetrics.Signed)
	default:
		answer.Refused, answer.Retry = volume.OneLine(err), errors.Is(err, errLater) || errors.Is(err, bucket.ErrAway)
		outcome := gatewaymetrics.Refused
		if answer.Retry {
			outcome = gatewaymetrics.Failed
		}
		u.cfg.Metrics.UploadSigned(outcome)
		if u.complaints.Allow() {
			u.cfg.Log.Info("a node cannot upload an object of the archive", logkeys.Node, node, logkeys.VolumeID, a.ID,
				logkeys.Namespace, a.Namespace, logkeys.Pod, a.Pod, "number", answer.Number, "again", answer.Retry, logkeys.Cause, answer.Refused)
		}
	}
	return answer
}

// place returns where the volume of an ask is in the bucket, and whose it is.
func (u *Uploads) place(ctx context.Context, node string, a *api.UploadAsk) (archived.Place, api.Owner, error) {
	owner, err := u.owner(ctx, node, a)
	if err != nil {
		return archived.Place{}, owner, err
	}
	cluster, err := u.cfg.Cluster()
	if err != nil {
		return archived.Place{}, owner, fmt.Errorf("%w: %w", errLater, err)
	}
	place := archived.Place{
		Cluster: cluster, NamespaceUID: owner.NamespaceUID, Place: volume.Place{Pod: volume.PodUID(a.PodUID), ID: volume.ID(a.ID)},
	}
	return place, owner, place.Check()
}

// owner returns whose the pod of an ask is: what the API server says of it, to this gateway or to one that has sealed it.
func (u *Uploads) owner(ctx context.Context, node string, a *api.UploadAsk) (api.Owner, error) {
	confirmed := func(o api.Owner) bool { return o.Verdict == volume.Confirmed.String() && o.NamespaceUID != "" }
	known, ok := u.cfg.Owners.Verdict(a.PodUID, node)
	switch {
	case ok && !confirmed(known):
		return known, errors.New("the API server says that the pod is not on this node")
	case a.Seal != "" && confirmed(a.Owner) && u.sealed(node, a):
		return a.Owner, nil
	}
	// Of a pod that is known the node may have said another namespace: the answer is about all that it says.
	answers := u.cfg.Owners.Ask(ctx, node, []api.OwnerAsk{{ID: a.ID, Namespace: a.Namespace, Pod: a.Pod, PodUID: a.PodUID}})
	switch {
	case len(answers) == 0:
		return api.Owner{}, fmt.Errorf("whose the pod was is not known yet: %w", errLater)
	case !confirmed(answers[0].Owner):
		return api.Owner{}, errors.New("the API server does not say that there was such a pod on this node")
	}
	return answers[0].Owner, nil
}

// piece answers an ask for a piece.
func (u *Uploads) piece(ctx context.Context, node string, a *api.UploadAsk, answer *api.UploadAnswer) error {
	p := a.Piece
	sum, err := archived.ParseSum(p.SHA256)
	switch {
	case err != nil:
		return err
	case p.Number < 0, p.Number >= archived.MaxPieces, p.Length <= 0, p.Length > archived.MaxPiece:
		return fmt.Errorf("there is no piece with the number %d and %d bytes", p.Number, p.Length)
	}
	place, _, err := u.place(ctx, node, a)
	if err != nil {
		return err
	}
	key := place.PieceKey(p.Number, sum)
	there, err := u.cfg.Bucket.Head(ctx, key)
	switch {
	case err == nil && there.Size == p.Length && u.now().Sub(there.Modified) < fresh:
		answer.There = true
		return nil
	case err != nil && !errors.Is(err, bucket.ErrNotFound):
		return err
	}
	return u.sign(key, p.Length, p.SHA256, answer)
}

// sign signs the upload of an object.
func (u *Uploads) sign(key string, length int64, sum string, answer *api.UploadAnswer) error {
	upload, err := u.cfg.Bucket.SignPut(key, length, sum, signedFor)
	if err != nil {
		return fmt.Errorf("%w: %w", errLater, err)
	}
	answer.URL, answer.Header, answer.Expires = upload.URL, upload.Header, upload.Expires
	return nil
}
