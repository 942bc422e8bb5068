package vpsa

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// number is a number, which may come as a string, or not at all.
type number float64

// UnmarshalJSON reads it. Its errors do not repeat the value.
func (n *number) UnmarshalJSON(raw []byte) error {
	s := strings.TrimSpace(string(bytes.Trim(raw, `"`)))
	if s == "" || s == "null" {
		*n = 0
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1<<53 {
		return errors.New("it has something else where a number belongs")
	}
	*n = number(f)
	return nil
}

// text is a string, which may come as a number, or not at all.
type text string

// UnmarshalJSON reads it.
func (t *text) UnmarshalJSON(raw []byte) error {
	*t = ""
	switch {
	case bytes.Equal(raw, []byte("null")):
		return nil
	case raw[0] == '"':
		return json.Unmarshal(raw, (*string)(t))
	case raw[0] == '{', raw[0] == '[':
		return nil
	}
	*t = text(raw)
	return nil
}

// flag is "YES" or "NO", or what else arrays write for that.
type flag bool

// UnmarshalJSON reads it.
func (f *flag) UnmarshalJSON(raw []byte) error {
	switch strings.ToLower(string(bytes.Trim(raw, `"`))) {
	case "yes", "true", "1", "on":
		*f = true
	default:
		*f = false
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// timeOf reads a time of the array; zero where it is none.
func timeOf(s text) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, string(s)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// split takes a list of IDs apart.
func split(s text) []string {
	var all []string
	for part := range strings.SplitSeq(string(s), ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}
