package gatewaymetrics

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

const (
	namespace = "katbox"
	subsystem = "gateway"
	// maxScrapes bounds the answers that are made at the same time, for a few servers.
	maxScrapes = 8
	// scrapeLimit bounds the time of one answer.
	scrapeLimit = 10 * time.Second
)

// Outcomes of questions to the API server and of connections that nodes ask for.
const (
	// Accepted, Refused and Failed are outcomes of a TokenReview, of a connection, and of a question
	// whether a user may do something. Failed means that the API server did not answer.
	Accepted = "accepted"
	Refused  = "refused"
	Failed   = "failed"
	// Busy is the outcome of a connection that has to come back later, with no question asked.
	Busy = "busy"
	// Found, Gone and Contradicted are outcomes of a look at a pod. Contradicted is a pod that is not
	// what the node has said of it, Seen one that needed no question, since the watch of pods that end had shown it.
	Found        = "found"
	Seen         = "seen"
	Gone         = "gone"
	Contradicted = "contradicted"
	// Forgotten is an outcome of a pod that its node was not told in time.
	Forgotten = "forgotten"
	// Written, Known, Limited, Gone and Failed are outcomes of an event on a pod. Known is one that was
	// written before, Limited one too many, Gone one of a namespace that is being deleted.
	Written = "written"
	Known   = "known"
	Limited = "limited"
	// Began, Ended and Failed are outcomes of a change of a Node that autoscalers are to keep, or not any longer.
	Began = "began"
	Ended = "ended"
)

// Serving is the certificate that the gateway shows to the API server and to the nodes.
const Serving = "serving"

// listBuckets go from a few nodes that answer at once to the limit of a list.
var listBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10}

// Metrics are all metrics of one gateway. Its methods may be called from several goroutines.
type Metrics struct {
	registry      *prometheus.Registry
	count         func() (expected, connected int) // see CountNodes; nil before it was called
	countHere     func() (nodes, replicas int)
	expected      prometheus.Gauge
	connected     prometheus.Gauge
	here          prometheus.Gauge
	replicas      prometheus.Gauge
	connections   *prometheus.CounterVec
	tokenReviews  *prometheus.CounterVec
	tokensRead    prometheus.Counter
	accessReviews *prometheus.CounterVec
	podLookups    *prometheus.CounterVec
	outcomesTold  *prometheus.CounterVec
	podEvents     *prometheus.CounterVec
	// outcomeSource has no value where the pods are not to be watched.
	outcomeSource *prometheus.GaugeVec
	// holds and archiving are for Holds and Archives.
	holds, archiving sync.Once
	nodesHeld        prometheus.Gauge
	nodeHolds        *prometheus.CounterVec
	lists            prometheus.Histogram
	incompleteLists  prometheus.Counter
	missingNodes     prometheus.Counter
	droppedEntries   prometheus.Counter
	streams          prometheus.Gauge
	streamBytes      prometheus.Counter
	requests         *prometheus.CounterVec
	certificateEnd   *prometheus.GaugeVec
	logLinesDropped  prometheus.Counter
	archive          archive
}

// New returns the metrics of a gateway of the given version and revision, each with its first value.
func New(version, revision string) *Metrics {
	r := prometheus.NewRegistry()
	with := promauto.With(r)
	m := &Metrics{
		registry:  r,
		expected:  with.NewGauge(gauge("nodes_expected", "Nodes that have a pod of the daemon.")),
		connected: with.NewGauge(gauge("nodes_connected", "Nodes with a connection to a replica that this one reaches, or to itself.")),
		here:      with.NewGauge(gauge("nodes_connected_here", "Nodes with a connection to this replica itself.")),
		replicas:  with.NewGauge(gauge("replicas", "Replicas of the gateway that answer this one, and itself.")),
		connections: with.NewCounterVec(counter("node_connections_total",
			"Connections that nodes asked for, by outcome."), []string{"outcome"}),
		tokenReviews: with.NewCounterVec(counter("token_reviews_total",
			"Questions to the API server about the token of a node, by outcome."), []string{"outcome"}),
		tokensRead: with.NewCounter(counter("tokens_read_total",
			"Tokens of nodes that were accepted by the cluster's keys, with no question to the API server.")),
		accessReviews: with.NewCounterVec(counter("access_reviews_total",
			"Questions to the API server whether a user may do something, by outcome; answers from the cache are not counted."),
			[]string{"outcome"}),
		podLookups: with.NewCounterVec(counter("pod_lookups_total",
			"Questions about the pod of a volume, by outcome; those that the watch of pods that end answers cost no request."),
			[]string{"outcome"}),
		outcomesTold: with.NewCounterVec(counter("pod_outcomes_total",
			"Pods whose end was reported to a node, by result; a node that connects again gets the reports again."),
			[]string{"outcome"}),
		podEvents: with.NewCounterVec(counter("pod_events_total",
			"Events that say where the files of a failed pod are, by what came of them."), []string{"outcome"}),
		outcomeSource: with.NewGaugeVec(gauge("outcome_source_up",
			"1 if the pods of the cluster are watched, to tell nodes how theirs have ended, else 0; absent with --outcomes=off."), nil),
		nodesHeld: prometheus.NewGauge(gauge("nodes_held",
			"Nodes that are kept from autoscalers while volumes on them wait to be archived; absent without --hold-nodes.")),
		nodeHolds: prometheus.NewCounterVec(counter("node_holds_total",
			"Changes of Nodes that are kept from autoscalers, by what came of them; absent without --hold-nodes."), []string{"outcome"}),
		lists: with.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Subsystem: subsystem,
			Name: "list_duration_seconds", Help: "Duration of lists, from the first question to a node to the last answer.",
			Buckets: listBuckets}),
		incompleteLists: with.NewCounter(counter("incomplete_lists_total", "Lists in which at least one node was missing.")),
		missingNodes: with.NewCounter(counter("list_missing_nodes_total",
			"Nodes that were missing in a list, counted for each list.")),
		droppedEntries: with.NewCounter(counter("dropped_entries_total",
			"Volumes in answers of nodes that were left out because they cannot be true.")),
		streams:     with.NewGauge(gauge("streams", "Streams of files of retained volumes that are running.")),
		streamBytes: with.NewCounter(counter("stream_bytes_total", "Bytes of retained volumes that were sent.")),
		requests: with.NewCounterVec(counter("requests_total",
			"Requests of the API server, by verb, resource and HTTP code."), []string{"verb", "resource", "code"}),
		certificateEnd: with.NewGaugeVec(gauge("certificate_end_timestamp_seconds",
			"When a certificate ends, in seconds since 1970."), []string{"certificate"}),
		logLinesDropped: with.NewCounter(counter("log_lines_dropped_total",
			"Log lines that were dropped because stdout was not read fast enough.")),
		archive: newArchive(),
	}
	for _, outcome := range []string{Accepted, Refused, Failed} {
		m.connections.WithLabelValues(outcome)
		m.tokenReviews.WithLabelValues(outcome)
		m.accessReviews.WithLabelValues(outcome)
	}
	m.connections.WithLabelValues(Busy)
	for _, outcome := range []string{Found, Seen, Gone, Contradicted, Failed} {
		m.podLookups.WithLabelValues(outcome)
	}
	for _, outcome := range []string{Accepted, Refused, Forgotten} {
		m.outcomesTold.WithLabelValues(outcome)
	}
	for _, outcome := range []string{Written, Known, Limited, Gone, Failed} {
		m.podEvents.WithLabelValues(outcome)
	}
	for _, outcome := range []string{Began, Ended, Failed} {
		m.nodeHolds.WithLabelValues(outcome)
	}
	with.NewGaugeVec(gauge("build_info", "Always 1; which build of the gateway this is."),
		[]string{"version", "revision", "goversion"}).WithLabelValues(version, revision, runtime.Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func gauge(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
}

// Gather returns the current metrics; it makes m a prometheus.Gatherer.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	if m.count != nil {
		expected, connected := m.count()
		m.expected.Set(float64(expected))
		m.connected.Set(float64(connected))
		nodes, replicas := m.countHere()
		m.here.Set(float64(nodes))
		m.replicas.Set(float64(replicas))
	}
	return m.registry.Gather()
}

// Handler answers with the current metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeLimit})
}

// CountNodes sets who counts the nodes, which happens each time that the metrics are read: how many
// have a pod of the daemon, how many of these a connection to a replica; and how many nodes have one to this replica,
// and how many replicas answer it. It is called once, before the first request.
func (m *Metrics) CountNodes(count func() (expected, connected int), here func() (nodes, replicas int)) {
	if m != nil {
		m.count, m.countHere = count, here
	}
}

// ConnectionAsked counts a connection that a node asked for: Accepted, Refused, Busy or Failed.
func (m *Metrics) ConnectionAsked(outcome string) {
	if m != nil {
		m.connections.WithLabelValues(outcome).Inc()
	}
}

// TokenReviewed counts a TokenReview: Accepted, Refused or Failed.
func (m *Metrics) TokenReviewed(outcome string) {
	if m != nil {
		m.tokenReviews.WithLabelValues(outcome).Inc()
	}
}

// TokenRead counts a token that was accepted without a TokenReview.
func (m *Metrics) TokenRead() {
	if m != nil {
		m.tokensRead.Inc()
	}
}

// AccessReviewed counts a SubjectAccessReview: Accepted, Refused or Failed.
func (m *Metrics) AccessReviewed(outcome string) {
	if m != nil {
		m.accessReviews.WithLabelValues(outcome).Inc()
	}
}

// PodLookedUp counts a look at a pod: Found, Seen, Gone, Contradicted or Failed.
func (m *Metrics) PodLookedUp(outcome string) {
	if m != nil {
		m.podLookups.WithLabelValues(outcome).Inc()
	}
}

// OutcomesTold counts pods whose end was reported to a node: Accepted or Refused by the node, or
// Forgotten before.
func (m *Metrics) OutcomesTold(outcome string, pods int) {
	if m != nil {
		m.outcomesTold.WithLabelValues(outcome).Add(float64(pods))
	}
}

// PodEvent counts an event on a failed pod: Written, Known, Limited, Gone or Failed.
func (m *Metrics) PodEvent(outcome string) {
	if m != nil {
		m.podEvents.WithLabelValues(outcome).Inc()
	}
}

// OutcomeSource says whether the pods of the cluster are watched now.
func (m *Metrics) OutcomeSource(up bool) {
	if m == nil {
		return
	}
	m.outcomeSource.WithLabelValues().Set(number(up))
}

// Holds lets the metrics of nodes that are held be there: they are to be held.
func (m *Metrics) Holds() {
	if m != nil {
		m.holds.Do(func() { m.registry.MustRegister(m.nodesHeld, m.nodeHolds) })
	}
}

// NodesHeld says how many nodes are kept from autoscalers.
func (m *Metrics) NodesHeld(nodes int) {
	if m != nil {
		m.nodesHeld.Set(float64(nodes))
	}
}

// NodeHold counts a change of a Node that autoscalers are to keep: Began, Ended or Failed.
func (m *Metrics) NodeHold(outcome string) {
	if m != nil {
		m.nodeHolds.WithLabelValues(outcome).Inc()
	}
}

// Listed counts a list that was answered, and the nodes that are missing in it.
func (m *Metrics) Listed(took time.Duration, missing int) {
	if m == nil {
		return
	}
	m.lists.Observe(took.Seconds())
	if missing > 0 {
		m.incompleteLists.Inc()
		m.missingNodes.Add(float64(missing))
	}
}

// EntriesDropped counts volumes that a node answered with and that cannot be true.
func (m *Metrics) EntriesDropped(entries int) {
	if m != nil {
		m.droppedEntries.Add(float64(entries))
	}
}

// StreamBegan counts a stream that begins, until StreamEnded.
func (m *Metrics) StreamBegan() {
	if m != nil {
		m.streams.Inc()
	}
}

// StreamEnded counts a stream that has ended, complete or not.
func (m *Metrics) StreamEnded() {
	if m != nil {
		m.streams.Dec()
	}
}

// BytesSent counts bytes of a stream.
func (m *Metrics) BytesSent(bytes int64) {
	if m != nil {
		m.streamBytes.Add(float64(bytes))
	}
}

// Requested counts a request that was answered. The caller chooses verb and resource from a list of
// its own: what is in neither is "other".
func (m *Metrics) Requested(verb, resource string, code int) {
	if m != nil {
		m.requests.WithLabelValues(verb, resource, strconv.Itoa(code)).Inc()
	}
}

// CertificateEnds sets when a certificate ends, such as Serving.
func (m *Metrics) CertificateEnds(certificate string, end time.Time) {
	if m != nil {
		m.certificateEnd.WithLabelValues(certificate).Set(float64(end.Unix()))
	}
}

// LogLineDropped counts a log line that was dropped.
func (m *Metrics) LogLineDropped() {
	if m != nil {
		m.logLinesDropped.Inc()
	}
}
