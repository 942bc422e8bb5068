package uploads

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// sealUse tells this use of the key from others.
const sealUse = "katbox: owner of a volume, version 1"

// seal returns the proof that a gateway has said whose a pod on a node is.
func (u *Uploads) seal(node, namespace, pod, podUID string, o api.Owner) string {
	m := hmac.New(sha256.New, u.cfg.Key)
	for _, text := range []string{
		sealUse, node, namespace, pod, podUID, o.Verdict, o.NamespaceUID, o.Kind, o.Name, o.UID, o.Job, o.JobIndex,
	} {
		// With its length, so that no two lists of texts are the same bytes.
		m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
		m.Write([]byte(text))
	}
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// sealed reports whether what a node gives back is what a gateway has said.
func (u *Uploads) sealed(node string, a *api.UploadAsk) bool {
	return hmac.Equal([]byte(u.seal(node, a.Namespace, a.Pod, a.PodUID, a.Owner)), []byte(a.Seal))
}

// Owners says whose volumes are. [owners.Owners] is one.
type Owners interface {
	// Ask answers what the node asked, as far as the answers are known when ctx ends.
	Ask(ctx context.Context, node string, asks []api.OwnerAsk) []api.OwnerAnswer
	// Verdict returns whose the volumes of a pod on a node are; false if the gateway does not know.
	Verdict(podUID, node string) (api.Owner, bool)
}

// Sealing answers what nodes ask about owners, with a seal.
type Sealing struct{ Uploads *Uploads }

// Ask answers what the node asked, as far as the answers are known when ctx ends.
func (s Sealing) Ask(ctx context.Context, node string, asks []api.OwnerAsk) []api.OwnerAnswer {
	answers := s.Uploads.cfg.Owners.Ask(ctx, node, asks)
	// Two pods of static manifests may have one UID, and not one ID of a volume.
	type asked struct{ id, podUID string }
	about := make(map[asked]api.OwnerAsk, len(asks))
	for _, a := range asks {
		about[asked{a.ID, a.PodUID}] = a
	}
	for i, answer := range answers {
		a, ok := about[asked{answer.ID, answer.PodUID}]
		if ok && answer.Owner.Verdict == volume.Confirmed.String() {
			answers[i].Seal = s.Uploads.seal(node, a.Namespace, a.Pod, a.PodUID, answer.Owner)
		}
	}
	return answers
}
