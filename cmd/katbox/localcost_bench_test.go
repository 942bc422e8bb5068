package main

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// BenchmarkLocalVolume makes and deletes volumes in a pool, several at the same time.
func BenchmarkLocalVolume(b *testing.B) {
	for _, tt := range []struct {
		name, fsType, backend string
		volume                local.NewVolume
	}{
		{"block image on xfs", "xfs", "image", local.NewVolume{Size: mebi, Block: true}},
		{"ext4 image on xfs", "xfs", "image", local.NewVolume{Size: 16 * mebi}},
		{"subvolume of btrfs", "btrfs", "btrfs", local.NewVolume{Size: mebi}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := newLocalScene(b, "--local-pool", "fast="+filepath.Join(roottest.FileSystem(b, tt.fsType, 1024), "pool")+",backend="+tt.backend)
			var number atomic.Int64
			b.SetParallelism(5)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					v := tt.volume
					v.Name = fmt.Sprintf("pvc-%d", number.Add(1))
					if _, err := s.node.CreateVolume(b.Context(), s.pool, v); err != nil {
						b.Error(err)
						return
					}
					if err := s.node.DeleteVolume(b.Context(), s.pool, v.Name); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "volumes/s")
		})
	}
}
