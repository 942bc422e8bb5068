package main

import (
	"slices"
	"testing"
)

func TestComplaints(t *testing.T) {
	t.Parallel()
	const log = `{"level":"info","time":"2026-01-01T00:00:00.000Z","msg":"ready"}
{"level":"error","msg":"record cannot be read; its data directory is retained for a full lifespan","volumeID":"csi-1"}
{"level":"info","msg":"retained","podUID":"p","volumeID":"csi-2","reason":"adopted"}
{"level":"info","msg":"retained","volumeID":"csi-3","reason":"abandoned"}
{"level":"error","msg":"call failed","volumeID":"pvc-1","error":"volume pvc-1 is retained since 2026-01-01 00:00:00 UTC: its claim"}
{"level":"error","logger":"local","msg":"not connected to the controller, trying again until it works","error":"begin TLS: slow"}
{"level":"error","msg":"a record about the controller is not connected to a volume","volumeID":"csi-4"}
panic: oh

`
	var volumes []string
	for _, c := range complaints(log) {
		volumes = append(volumes, c.volume)
	}
	if want := []string{"csi-1", "csi-2", "csi-4", ""}; !slices.Equal(volumes, want) {
		t.Errorf("complaints about %q, want %q", volumes, want)
	}
}
