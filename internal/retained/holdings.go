package retained

import "github.com/katbox/katbox/internal/volume"

// Changes returns another number than before if a volume has come or gone since.
func (q *Queue) Changes() uint64 { return q.index.changes }

// Holdings returns how many retained volumes there are of each namespace, in no order. It costs as
// much as there are namespaces. Volumes of too many namespaces are counted as
// [volume.OtherNamespaces] together. The first call prepares the queue as [Queue.Index] does.
func (q *Queue) Holdings() []volume.Holding {
	q.Index()
	all := make([]volume.Holding, 0, len(q.index.lists))
	for _, l := range q.index.lists {
		all = append(all, volume.Holding{
			Namespace: l.space.namespace, NamespaceUID: l.space.namespaceUID, Verdict: l.space.verdict,
			Volumes: l.length, Newest: q.table.wall(l.last()), Oldest: q.table.wall(l.first()),
		})
	}
	return all
}
