package report

import (
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// resultFormat is the version of the format of --json. It changes when a field
// goes or gets another meaning, not when one is added.
const resultFormat = 2

// Result is a whole run. Its JSON is what --json writes: names end in their
// unit, fields that do not apply are missing, and what counts seconds counts
// them from the beginning of the run.
type Result struct {
	Format  int     `json:"format"`
	Verdict Verdict `json:"verdict"`
	// Unproven is why the run could not come to its end, beside violations.
	Unproven string `json:"unproven,omitempty"`
	// Command makes the same decisions again.
	Command string    `json:"command"`
	Seed    uint64    `json:"seed"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// Machine says in a line what the run was on.
	Machine string `json:"machine,omitempty"`
	// Kept is the directory with the driver's log; missing if it was removed.
	Kept      string        `json:"kept,omitempty"`
	Workload  workloadFacts `json:"workload"`
	Summary   summary       `json:"summary"`
	Methods   []methodCalls `json:"methods"`
	BadInput  badInput      `json:"bad_input"`
	Deadlines deadlines     `json:"deadlines"`
	Reading   reading       `json:"reading"`
	Driver    driver        `json:"driver"`
	// Promises are all that there are, with a count of 0 for those that held.
	Promises []promiseCount `json:"promises"`
	// Violations are the first thousand; Promises counts all.
	Violations []violation `json:"violations"`
	// Faults are the kinds that were planned or done; FaultSpans are the faults
	// of the node one by one, in the order of their beginnings.
	Faults     []faultCount `json:"faults"`
	FaultSpans []faultSpan  `json:"fault_spans"`
	Samples    []sample     `json:"samples"`
}

// Verdict is the outcome of a run in a word.
type Verdict string

// The verdicts.
const (
	Clean    Verdict = "clean"    // nothing was broken, and everything was done
	Violated Verdict = "violated" // a promise was broken
	Unproven Verdict = "unproven" // nothing was broken, but the run did not come to its end
)

// workloadFacts are the parts of the workload that the other numbers are read
// with, and all of it as text.
type workloadFacts struct {
	Name            string  `json:"name"`
	Pods            int     `json:"pods"`
	Parallel        int     `json:"parallel"`
	LifespanSeconds float64 `json:"lifespan_seconds"`
	Headroom        float64 `json:"headroom"`
	YAML            string  `json:"yaml"`
}

// summary has the numbers of the run as a whole.
type summary struct {
	Pods       int `json:"pods"`
	Containers int `json:"containers"`
	Volumes    int `json:"volumes"`
	// Calls, Errors and Cancelled leave the calls with bad input out. Cancelled
	// calls are those that ended so, Doubled and Reordered ones were sent so.
	Calls     int `json:"calls"`
	Errors    int `json:"errors"`
	Doubled   int `json:"doubled"`
	Cancelled int `json:"cancelled"`
	Reordered int `json:"reordered"`
	// Overfilled is how often a pod wrote into a volume until it was refused.
	Overfilled int `json:"overfilled"`
	Violations int `json:"violations"`
	// PodsPerSecond and CallsPerSecond are means over the whole run.
	PodsPerSecond  float64 `json:"pods_per_second"`
	CallsPerSecond float64 `json:"calls_per_second"`
}

// methodCalls is about all calls of one CSI method. The latencies are those of
// the calls that succeeded, 0 if none did.
type methodCalls struct {
	Method    history.Method `json:"method"`
	Calls     int            `json:"calls"`
	P50Millis float64        `json:"p50_ms"`
	P90Millis float64        `json:"p90_ms"`
	P99Millis float64        `json:"p99_ms"`
	MaxMillis float64        `json:"max_ms"`
	// Codes counts the answers by the name of their gRPC code, OK among them.
	Codes map[string]int `json:"codes"`
}

// badInput is about the calls whose input was bad on purpose, of any method.
type badInput struct {
	Calls int            `json:"calls"`
	Codes map[string]int `json:"codes"`
}

// deadlines compares the deadlines that were promised with those that were
// kept.
type deadlines struct {
	// Seen counts the volumes whose data was still there just before the
	// deadline, Expired those whose data went in time after it, Evicted those
	// whose data went before it under pressure, Removed those that a person
	// removed. Following is how many still
	// had theirs before them when the run ended.
	Seen    int `json:"seen"`
	Expired int `json:"expired"`
	Evicted int `json:"evicted"`
	Removed int `json:"removed"`
	// Repeated is how many went early because enough others of their owner stayed.
	Repeated int `json:"repeated"`
	// Attached is how many another pod attached before they went.
	Attached  int `json:"attached"`
	Following int `json:"following"`
	// How long after the deadline data was seen to be gone.
	LateP50Millis float64 `json:"late_p50_ms"`
	LateP99Millis float64 `json:"late_p99_ms"`
	LateMaxMillis float64 `json:"late_max_ms"`
	// Late counts the volumes by how long that was, in the order of the time.
	Late []lateVolumes `json:"late"`
	// LowestPressure is the lowest pressure factor of any sample; missing if
	// none knows it.
	LowestPressure *float64 `json:"lowest_pressure,omitempty"`
}

// lateVolumes counts the volumes whose data went at most so late, and later than in the one before.
type lateVolumes struct {
	ToMillis float64 `json:"to_ms"`
	Volumes  int     `json:"volumes"`
}

// reading is what people did with retained volumes, through the admin socket.
type reading struct {
	Lists   int   `json:"lists"`
	Volumes int   `json:"volumes"`
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	Tars    int   `json:"tars"`
	// Ended counts requests that ended early because their volume went, or the
	// driver was killed; Refused those for what is not to be read.
	Ended   int `json:"ended"`
	Refused int `json:"refused"`
}

// driver is about the driver over all its processes: the sum of their CPU time,
// and the highest memory and number of threads of any.
type driver struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	// CPUMillisPerCall shares out the time of everything, even of expiring
	// volumes and of starting again, among all calls, even those with bad input.
	CPUMillisPerCall float64 `json:"cpu_ms_per_call"`
	PeakRSSBytes     int64   `json:"peak_rss_bytes"`
	PeakThreads      int     `json:"peak_threads"`
}

// promiseCount is how often a promise was broken.
type promiseCount struct {
	Promise history.Promise `json:"promise"`
	Broken  int             `json:"broken"`
}

// violation is a broken promise with its story.
type violation struct {
	Promise history.Promise `json:"promise"`
	At      time.Time       `json:"at"`
	What    string          `json:"what"`
	// Volume and Pod are missing if it concerns no single volume.
	Volume string `json:"volume,omitempty"`
	Pod    string `json:"pod,omitempty"`
	// Story is what happened to the volume until then, a line for each event.
	Story []string `json:"story,omitempty"`
}

// faultCount is how often there was a kind of fault, and should have been.
type faultCount struct {
	Kind    workload.FaultKind `json:"kind"`
	Planned int                `json:"planned"`
	Done    int                `json:"done"`
}

// faultSpan is one fault of the node.
type faultSpan struct {
	Kind workload.FaultKind `json:"kind"`
	From float64            `json:"from"`
	// To is missing if it lasted until the end, or has no length.
	To   *float64 `json:"to,omitempty"`
	What string   `json:"what,omitempty"`
}
