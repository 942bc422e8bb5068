package messages

import "github.com/katbox/katbox/internal/volume"

// SaveRecord asks for a record to be made durable. The answer comes once it
// is. Volume -> recorder.
type SaveRecord struct {
	Record volume.Record
	Reply[struct{}]
}

// ForgetRecord asks for a volume's record to be removed. The answer comes once
// that is durable. Volume -> recorder.
type ForgetRecord struct {
	ID volume.ID
	Reply[struct{}]
}

func (*SaveRecord) toRecorder()   {}
func (*ForgetRecord) toRecorder() {}
