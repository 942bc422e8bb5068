package v1alpha1

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/duration"
)

// TestDuration: what people write is read, and what is written is read again.
func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "3m": 3 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "-1h": 0,
	} {
		class := &PoolClass{}
		if err := json.Unmarshal([]byte(`{"spec": {"lifespan": "`+text+`"}}`), class); err != nil || class.Spec.Lifespan.Duration != want {
			t.Errorf("%s: %v, want %v (%v)", text, class.Spec.Lifespan, want, err)
			continue
		}
		content, err := json.Marshal(class.Spec.Lifespan)
		again := &Duration{}
		if err != nil || json.Unmarshal(content, again) != nil || again.Duration != want {
			t.Errorf("%s is written as %s, and read as %v (%v)", text, content, again, err)
		}
	}
	for _, content := range []string{`"soon"`, `5`, `""`} {
		if err := json.Unmarshal([]byte(content), &Duration{}); err == nil {
			t.Errorf("%s is read as a duration", content)
		}
	}
}

// TestRuleOfDurations: the API server's rule is that of the reader. A marker cannot name a constant.
func TestRuleOfDurations(t *testing.T) {
	source, err := os.ReadFile("duration.go")
	if err != nil {
		t.Fatal(err)
	}
	want := "self.matches(r'" + duration.Form + "') && (self.matches('" + duration.Long + "') ||"
	if !strings.Contains(string(source), want) {
		t.Errorf("the rule is not %s", want)
	}
}
