package ephemeral

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/katbox/katbox/internal/model/volume"
)

// BenchmarkRetainedLine writes the line of a volume that is retained as the daemon does, into
// /dev/null; "left out" is one beyond the limit.
func BenchmarkRetainedLine(b *testing.B) {
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(out), zap.InfoLevel)
	record := volume.Record{
		ID: "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Pod: "01234567-89ab-cdef-0123-456789abcdef",
		Namespace: "batch", PodName: "nightly-job-28391234-x7k2q", VolumeName: "scratch", Published: time.Now(),
	}.Retain(time.Now(), testLifespan)
	for name, used := range map[string]float64{"written": 0, "left out": 2 * afterlifeBurst} {
		b.Run(name, func(b *testing.B) {
			a := newAfterlife(Config{Log: zapr.NewLogger(zap.New(core)), Node: "worker-7", WorkdirOnNode: "/var/lib/csi-katbox-data"})
			defer a.flush()
			b.ReportAllocs()
			for b.Loop() {
				a.kept.used = used
				a.retained(record, unpublished)
			}
		})
	}
}
