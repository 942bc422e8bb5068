package hub

import (
	"context"
	"slices"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// mostUploads bounds the objects of a connection that wait for a URL. The node repeats what is not answered.
	mostUploads = 16
	// mostUploadLine bounds them in one line of a summary.
	mostUploadLine = 4 * mostUploads
)

// Uploads lets nodes upload objects of the archive.
type Uploads interface {
	// Sign answers what the node asked, as far as the answers are known when ctx ends.
	Sign(ctx context.Context, node string, asks []api.UploadAsk) []api.UploadAnswer
}

// upload queues what a node wants to upload. A goroutine answers, and ends with the last one.
func (c *connection) upload(asks []api.UploadAsk) {
	if c.registry.Uploads == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range asks {
		if !isShort(&a) {
			continue
		}
		again := func(b api.UploadAsk) bool { return b.ID == a.ID && b.Number() == a.Number() }
		if i := slices.IndexFunc(c.uploads, again); i >= 0 {
			c.uploads[i] = a
		} else if len(c.uploads) < mostUploads {
			c.uploads = append(c.uploads, a)
		}
	}
	if len(c.uploads) > 0 && !c.signing {
		c.signing = true
		go c.signAll()
	}
}

// isShort reports whether an ask may be kept, and drops what nobody reads of it.
func isShort(a *api.UploadAsk) bool {
	texts := []string{
		a.ID, a.Namespace, a.Pod, a.PodUID, a.Seal, a.Owner.Verdict, a.Owner.NamespaceUID, a.Owner.Kind, a.Owner.Name, a.Owner.UID,
		a.Owner.Job, a.Owner.JobIndex,
	}
	if a.Piece != nil {
		texts = append(texts, a.Piece.SHA256)
	}
	if a.Index != nil {
		v := &a.Index.Shown
		v.Owner, v.Hold, v.Terms = nil, nil, nil
		texts = append(texts, a.Index.SHA256, v.ID, v.Namespace, v.Pod, v.PodUID, v.Claim, v.Volume, v.ServiceAccount, v.Node, v.Phase,
			v.Outcome)
	}
	return !slices.ContainsFunc(texts, func(text string) bool { return len(text) > mostField })
}

func (c *connection) signAll() {
	for {
		c.mu.Lock()
		batch := c.uploads
		c.uploads = nil
		if len(batch) == 0 || c.ctx.Err() != nil {
			c.uploads, c.signing = nil, false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if err := c.sign(batch); err != nil {
			c.registry.Log.V(1).Info("a node did not take the URLs for its archive; it will ask again",
				logkeys.Node, c.name, logkeys.Cause, err.Error())
		}
	}
}

// sign answers asks, as far as the answers are known in time.
func (c *connection) sign(asks []api.UploadAsk) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.registry.limits.answer)
	defer cancel()
	answers := c.registry.Uploads.Sign(ctx, c.name, asks)
	if len(answers) == 0 {
		return nil
	}
	return inParts(answers, func(items []api.UploadAnswer) error {
		// The bucket may have taken all the time.
		ctx, cancel := context.WithTimeout(c.ctx, c.registry.limits.answer)
		defer cancel()
		return c.post(ctx, api.UploadsPath, api.UploadAnswers{Items: items})
	})
}
