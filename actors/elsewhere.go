package actors

import (
	"path/filepath"

	"github.com/katbox/katbox/internal/volume"
)

// tellElsewhere logs that volumes are published where this kubelet has no pods: about
// them nothing can be concluded, and without an unpublish they are kept.
func tellElsewhere(cfg Config, awake []volume.Record) {
	e := environment{podsDir: filepath.Clean(cfg.PodsDir)}
	count, example := 0, ""
	for i := range awake {
		if len(e.podDirectories(&awake[i])) > 0 {
			continue
		}
		if count == 0 {
			example = awake[i].Targets[0].Path
		}
		count++
	}
	if count > 0 {
		cfg.Log.Info("volumes are published at targets that are not below the kubelet's pods directory; "+
			"they are kept until they are unpublished, or the node is booted; is it the right one?",
			"directory", cfg.PodsDir, "volumes", count, "example", example)
	}
}
