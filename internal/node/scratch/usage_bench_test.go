package scratch

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// BenchmarkUsage measures small volumes, each of a pod of its own. An operation is one volume.
func BenchmarkUsage(b *testing.B) {
	d, err := Open(b.TempDir() + "/work")
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	const volumes = 1000
	pods := make([]volume.PodUID, volumes)
	for i := range pods {
		pods[i] = volume.PodUID(fmt.Sprintf("pod-%d", i))
		if _, err := d.Create(at(pods[i], vol)); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(d.Path(at(pods[i], vol))+"/log", []byte("some"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, err := d.Usage(context.Background(), at(pods[i%volumes], vol), nil); err != nil {
			b.Fatal(err)
		}
	}
}
