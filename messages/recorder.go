package messages

import "github.com/katbox/katbox/internal/model/volume"

// ChangeRecord asks for one change of the records. The answer comes once that is durable. Volume ->
// recorder.
type ChangeRecord struct {
	volume.Change
	Reply[struct{}]
}

// ProbeStore asks whether records can be made durable at present. A disk without room for them
// answers too, which is enough. Front -> supervisor -> recorder.
type ProbeStore struct{ Reply[struct{}] }
