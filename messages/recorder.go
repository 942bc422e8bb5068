package messages

import "github.com/katbox/katbox/internal/model/volume"

// ChangeRecord asks for one change of the records. The answer comes once that is durable. Volume ->
// recorder.
type ChangeRecord struct {
	volume.Change
	Reply[struct{}]
}

// RecordsWait tells that the journal has a change that is not durable, the first one since the last commit began. Volume ->
// recorder.
type RecordsWait struct{}

// ProbeStore asks whether records can be made durable at present. A disk without room for them
// answers too, which is enough. Front -> supervisor -> recorder.
type ProbeStore struct{ Reply[struct{}] }
