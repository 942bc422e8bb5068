package metrics

import "github.com/prometheus/client_golang/prometheus"

// reads are metrics of the requests of people who read retained volumes.
type reads struct {
	streams        prometheus.Gauge
	streamsRefused prometheus.Counter
	bytesRead      prometheus.Counter
	requests       *prometheus.CounterVec
}

func newReads(r *prometheus.Registry) reads {
	return reads{
		streams:        gauge(r, "read_streams", "Streams of files of retained volumes that are running."),
		streamsRefused: counter(r, "read_streams_refused_total", "Streams that were refused because as many as are allowed were running."),
		bytesRead:      counter(r, "read_bytes_total", "Bytes of retained volumes that were sent to readers."),
		requests: counterVec(r, "read_requests_total",
			"Requests on the admin socket and through the gateway, by what they asked for and how they ended.", "verb", "outcome"),
	}
}

// StreamBegan counts a stream that begins, until StreamEnded.
func (m *Metrics) StreamBegan() { m.streams.Inc() }

// StreamEnded counts a stream that has ended, complete or not.
func (m *Metrics) StreamEnded() { m.streams.Dec() }

// StreamRefused counts a stream that was refused.
func (m *Metrics) StreamRefused() { m.streamsRefused.Inc() }

// BytesRead counts bytes that were sent to a reader.
func (m *Metrics) BytesRead(bytes int64) { m.bytesRead.Add(float64(bytes)) }

// ReadRequested counts a request that has ended.
func (m *Metrics) ReadRequested(verb, outcome string) {
	m.requests.WithLabelValues(verb, outcome).Inc()
}
