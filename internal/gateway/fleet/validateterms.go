package fleet

import (
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostText is the longest text, in bytes.
const mostText = 64

// validateTerms is validateVolume for what a volume was promised, and for its outcome and hold.
func validateTerms(v *api.Volume) error {
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
		if err := validateTexts(t.Lifespan, t.LifespanSucceeded); err != nil {
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
	if err := validateTime(h.Until); err != nil {
		return err
	}
	return validateReason(h.By, h.Why)
}

// validateReason returns nil for who decided something, and why, as records have them.
func validateReason(by, why string) error {
	return volume.Hold{Kind: volume.Pinned, By: by, Why: why}.Check()
}

// validateTexts returns nil for durations and other words. Later daemons may have others than this
// gateway knows.
func validateTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > mostText || validateReason(text, "") != nil {
			return fmt.Errorf("%.300q is no word of a node", text)
		}
	}
	return nil
}

// validateGone is validateVolume for a deleted volume.
func validateGone(g *api.GoneVolume, node string, q api.Query) error {
	if g.Phase != api.PhaseGone {
		return fmt.Errorf("its phase is %q", g.Phase)
	}
	g.Phase = volume.Retained.String()
	if err := validateVolume(&g.Volume, node, q); err != nil {
		return err
	}
	g.Phase = api.PhaseGone
	if err := validateTime(g.GoneAt); err != nil {
		return err
	}
	if err := validateTexts(g.Reason, g.Promised, g.Kept); err != nil {
		return err
	}
	return validateReason(g.By, g.Why)
}
