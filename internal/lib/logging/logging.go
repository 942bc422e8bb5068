// Package logging makes the log of a program of Katbox: lines in JSON or for people. [NewSink] writes
// them in the background, so that a reader that stalls does not stall the program.
package logging

import (
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/katbox/katbox/internal/lib/logsink"
)

// Most bounds the bytes of the lines that wait when the reader stalls: some three thousand lines.
const Most = 1 << 20

// New returns a logger that writes lines of the level or above to w. The level is debug, info, warn
// or error, the format json or console.
func New(level, format string, w io.Writer) (*zap.Logger, error) {
	lowest, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level %q is not debug, info, warn or error", level)
	}
	encoder, err := newEncoder(format)
	if err != nil {
		return nil, err
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lowest)), nil
}

// NewSink returns a buffer in front of w. dropped is called for each line that was dropped because w
// was not fast enough; it must not log. Close the sink.
func NewSink(format string, w io.Writer, dropped func()) (*logsink.Sink, error) {
	encoder, err := newEncoder(format)
	if err != nil {
		return nil, err
	}
	missing := func(lines int) []byte {
		entry := zapcore.Entry{Level: zap.WarnLevel, Time: time.Now(),
			Message: "lines of the log are missing here, stdout was not read fast enough"}
		line, err := encoder.EncodeEntry(entry, []zapcore.Field{zap.Int("lines", lines)})
		if err != nil {
			return nil // dropped has counted them
		}
		return line.Bytes()
	}
	return logsink.New(logsink.Config{Out: w, Most: Most, Dropped: dropped, Missing: missing}), nil
}

func newEncoder(format string) (zapcore.Encoder, error) {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.TimeKey = "time"
	switch format {
	case "json":
		return zapcore.NewJSONEncoder(encoding), nil
	case "console":
		return zapcore.NewConsoleEncoder(encoding), nil
	default:
		return nil, fmt.Errorf("--log-format %q is not json or console", format)
	}
}
