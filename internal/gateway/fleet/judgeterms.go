package fleet

import (
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostWord is the longest word, in bytes.
const mostWord = 64

// credibleTerms is credible for what a volume was promised, and what became of that.
func credibleTerms(v *api.Volume) error {
	if _, ok := volume.ParseOutcome(v.Outcome); !ok && v.Outcome != "" {
		return fmt.Errorf("its outcome is %.300q", v.Outcome)
	}
	if t := v.Terms; t != nil {
		switch retain := []string{"", volume.RetainAlways.String(), volume.RetainOnFailure.String(), volume.RetainNever.String()}; {
		case !slices.Contains(retain, t.Retain):
			return fmt.Errorf("its terms have retain=%.300q", t.Retain)
		case t.LimitBytes < 0, t.LimitBytes > mostSize, t.LimitInodes < 0, t.LimitInodes > mostSize:
			return fmt.Errorf("its limits are %d and %d", t.LimitBytes, t.LimitInodes)
		}
		if err := credibleWords(t.Lifespan, t.LifespanSucceeded); err != nil {
			return err
		}
	}
	h := v.Hold
	if h == nil {
		return nil
	}
	if h.Kind != volume.Pinned.String() && h.Kind != volume.Released.String() {
		return fmt.Errorf("its hold is %.300q", h.Kind)
	}
	if err := credibleTime(h.Until); err != nil {
		return err
	}
	return credibleReason(h.By, h.Why)
}

// credibleReason returns nil for who decided something, and why, as records have them.
func credibleReason(by, why string) error {
	return volume.Hold{Kind: volume.Pinned, By: by, Why: why}.Check()
}

// credibleWords returns nil for durations and other words. Later daemons may have others than this
// gateway knows.
func credibleWords(texts ...string) error {
	for _, text := range texts {
		if len(text) > mostWord || credibleReason(text, "") != nil {
			return fmt.Errorf("%.300q is no word of a node", text)
		}
	}
	return nil
}

// credibleGone is credible for a volume that is gone.
func credibleGone(g *api.GoneVolume, node string, q api.Query) error {
	if g.Phase != api.PhaseGone {
		return fmt.Errorf("its phase is %q", g.Phase)
	}
	g.Phase = volume.Retained.String()
	if err := credible(&g.Volume, node, q); err != nil {
		return err
	}
	g.Phase = api.PhaseGone
	if err := credibleTime(g.GoneAt); err != nil {
		return err
	}
	if err := credibleWords(g.Reason, g.Promised, g.Kept); err != nil {
		return err
	}
	return credibleReason(g.By, g.Why)
}
