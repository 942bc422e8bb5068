package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStoriesAreDifferentOnes(t *testing.T) {
	list := stories([]violation{
		{promise: refusedCall, volume: "a", what: "first"},
		{promise: refusedCall, volume: "a", what: "second"},
		{promise: lostMarker, volume: "a"},
		{promise: refusedCall, volume: "b"},
		{promise: leakedMount, what: "x"},
		{promise: leakedMount, what: "y"},
		{promise: refusedCall, volume: "a", what: "third"},
	})
	var got []string
	for _, s := range list {
		got = append(got, fmt.Sprintf("%s %s %d", s.volume, s.what, s.times))
	}
	want := []string{
		// One of each promise, in their order, then the others.
		"a first 3", "a  1", " x 1", "b  1", " y 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("stories %q, want %q", got, want)
	}
}

func TestReportLimitsStories(t *testing.T) {
	var f findings
	for i := range mostStories + 3 {
		f.add(leakedMount, nil, strings.Repeat("x", i+1))
	}
	var out bytes.Buffer
	report(&out, testOptions(), newStats(), &f, time.Second)
	if got := strings.Count(out.String(), "\nviolation "); got != mostStories {
		t.Errorf("%d stories, want %d", got, mostStories)
	}
	for _, want := range []string{"and 3 more stories", "--seed 1 ", "a mount was left over"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}

// TestEveryPromiseIsReported: a promise that the table lacks would be counted
// among the violations only.
func TestEveryPromiseIsReported(t *testing.T) {
	var f findings
	for _, p := range promises {
		f.add(p, nil, "")
	}
	for _, p := range promises {
		if f.number(p) != 1 {
			t.Errorf("%q is listed twice or not counted", p)
		}
	}
	if table := summaryTable(newStats(), &f, 0); strings.Count(table, " 1 ") < len(promises) {
		t.Errorf("the table lacks a promise:\n%s", table)
	}
}
