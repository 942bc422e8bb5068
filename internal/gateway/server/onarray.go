package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// onArray says what to do with a claim's volume on a remote array, of which a request wants more than that it is there.
func (c *call) onArray(v api.Volume) error {
	if c.what.Verb != "get" {
		return resource.BadRequest(api.BadParameter, "volume", "%s is that of a deleted claim, which is kept as its PoolVolume says: "+
			"an administrator changes spec.lifespan there, or deletes it with kubectl delete poolvolume %s", v.ID, v.ID)
	}
	until := ""
	if v.ExpiresAt != nil {
		until = " until " + v.ExpiresAt.UTC().Format(time.RFC3339)
	}
	what := fmt.Sprintf("%s is kept on the array of pool %s%s, where it is mounted nowhere, so that no node reads it",
		v.ID, v.Array.Pool, until)
	if v.Claim == "" || v.Namespace == "" {
		return resource.BadRequest(api.BadParameter, "volume", "%s; it is of no claim, and an administrator gives it to one "+
			"with spec.claimRef of its PoolVolume", what)
	}
	return resource.BadRequest(api.BadParameter, "volume", "%s; a new claim gets it back; put a StorageClass of the PoolClass %s "+
		"for STORAGECLASS: echo '%s' | kubectl create -n %s -f -", what, v.Array.Class, restoring(v), v.Namespace)
}

// restoring is an example of a claim that gets a volume back, as JSON in one line: errors are shown in one.
func restoring(v api.Volume) string {
	type (
		metadata struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		}
		requests struct {
			Requests map[string]string `json:"requests"`
		}
		spec struct {
			StorageClassName string   `json:"storageClassName"`
			AccessModes      []string `json:"accessModes"`
			VolumeMode       string   `json:"volumeMode,omitempty"`
			Resources        requests `json:"resources"`
		}
		claim struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Metadata   metadata `json:"metadata"`
			Spec       spec     `json:"spec"`
		}
	)
	of := v.Claim
	if v.Owner != nil && v.Owner.UID != "" {
		of = v.Owner.UID // there may have been other claims of this name
	}
	example := claim{
		"v1", "PersistentVolumeClaim", metadata{v.Claim, map[string]string{v1alpha1.RestoreAnnotation: of}},
		spec{"STORAGECLASS", []string{"ReadWriteOnce"}, "", requests{map[string]string{"storage": v.Array.Size}}},
	}
	if v.Array.Block {
		example.Spec.VolumeMode = string(v1alpha1.Block)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(example) // it consists of texts
	return strings.TrimSpace(text.String())
}
