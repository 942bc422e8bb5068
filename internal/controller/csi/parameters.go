package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/lib/nearest"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// The parameters of a StorageClass.
const (
	// keyClass names the PoolClass; keySeedClass is what the Zadara driver calls it.
	keyClass     = "poolClass"
	keySeedClass = "VSCStorageClassName"
	keyProtocol  = "protocol"
	// keyOptions is a JSON object of further fields of the array's own request.
	keyOptions = "volumeOptions"
	keyFSType  = "csi.storage.k8s.io/fstype"
)

// What the provisioner and the snapshotter add with --extra-create-metadata.
const (
	keyClaimName      = "csi.storage.k8s.io/pvc/name"
	keyClaimNamespace = "csi.storage.k8s.io/pvc/namespace"
	keyVolumeName     = "csi.storage.k8s.io/pv/name"

	keySnapshotName      = "csi.storage.k8s.io/volumesnapshot/name"
	keySnapshotNamespace = "csi.storage.k8s.io/volumesnapshot/namespace"
	keySnapshotContent   = "csi.storage.k8s.io/volumesnapshotcontent/name"
)

var (
	volumeKeys = []string{
		keyClass, keySeedClass, keyProtocol, keyOptions, keyFSType, keyClaimName, keyClaimNamespace, keyVolumeName,
	}
	snapshotKeys = []string{keySnapshotName, keySnapshotNamespace, keySnapshotContent}
	// ownOptions are the fields of the array's request that Katbox sets itself.
	ownOptions = []string{"name", "display_name", "capacity", "pool", "block", "timeout"}
)

// maxOptions bounds volumeOptions in bytes; a StorageClass's parameters are bounded by far more.
const maxOptions = 4096

// parametersOf reads the parameters of a StorageClass into v. The error names the one that is not
// acceptable.
func parametersOf(kind pools.Kind, v *pools.NewVolume, parameters map[string]string) error {
	if err := checkKeys(parameters, volumeKeys); err != nil {
		return err
	}
	class, seed := parameters[keyClass], parameters[keySeedClass]
	if class != "" && seed != "" && class != seed {
		return volume.Invalid(parameter(keySeedClass), fmt.Sprintf("is %.100q, and %s is %.100q: give one of them", seed, keyClass, class))
	}
	v.Class = class
	if class == "" {
		v.Class = seed
	}
	if v.Class != "" && !pools.IsID(v.Class) {
		return volume.Invalid(parameter(keyClass), fmt.Sprintf("is %.100q, which is not the name of a PoolClass", v.Class))
	}
	if v.Protocol = pools.Protocol(parameters[keyProtocol]); v.Protocol != "" {
		if err := protocolFits(kind, v.Protocol); err != nil {
			return err
		}
	}
	v.FSType = parameters[keyFSType]
	v.Claim = pools.Claim{Namespace: parameters[keyClaimNamespace], Name: parameters[keyClaimName]}
	options, err := optionsOf(parameters[keyOptions])
	if err == nil && len(options) > 0 && kind == pools.KindLocal {
		err = volume.Invalid(parameter(keyOptions), "is for arrays: a volume on a node has no options")
	}
	v.Options = options
	return err
}

// protocolFits refuses a protocol by which no volume of the kind is reached.
func protocolFits(kind pools.Kind, p pools.Protocol) error {
	switch {
	case kind == pools.KindLocal && p != pools.Local:
		return volume.Invalid(parameter(keyProtocol), fmt.Sprintf("is %.100q, and volumes of this driver are on the nodes: "+
			"leave it out, or give local", string(p)))
	case kind == pools.KindArray && p == pools.Local:
		return volume.Invalid(parameter(keyProtocol), "is local, and neither nfs nor iscsi: volumes on the nodes' disks have a driver of "+
			"their own")
	case kind == pools.KindArray && p != pools.NFS && p != pools.ISCSI:
		return volume.Invalid(parameter(keyProtocol), fmt.Sprintf("is %.100q, and neither nfs nor iscsi", string(p)))
	}
	return nil
}

// checkKeys refuses a parameter that is not known.
func checkKeys(parameters map[string]string, allowed []string) error {
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if slices.Contains(allowed, key) {
			continue
		}
		reason := "is not known"
		if near := nearest.Of(key, allowed); near != "" {
			reason += "; did you mean " + near + "?"
		}
		return volume.Invalid(parameter(key), reason)
	}
	return nil
}

func parameter(key string) string { return fmt.Sprintf("parameters[%.100q]", key) }

// optionsOf reads a JSON object whose values are strings, numbers or booleans; those are YES and NO for
// an array.
func optionsOf(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	refuse := func(reason string) (map[string]string, error) {
		return nil, volume.Invalid(parameter(keyOptions), reason)
	}
	if len(text) > maxOptions {
		return refuse(fmt.Sprintf("is longer than %d bytes", maxOptions))
	}
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return refuse("is not a JSON object: " + err.Error())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return refuse("has something after its JSON object")
	}
	options := make(map[string]string, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key == "" || slices.Contains(ownOptions, strings.ToLower(key)) {
			return refuse(fmt.Sprintf("has the field %q, which Katbox sets itself", key))
		}
		switch value := fields[key].(type) {
		case string:
			options[key] = value
		case json.Number:
			options[key] = value.String()
		case bool:
			options[key] = "NO"
			if value {
				options[key] = "YES"
			}
		default:
			return refuse(fmt.Sprintf("has the field %.100q, which is no string, number or boolean", key))
		}
	}
	if len(options) == 0 {
		return nil, nil
	}
	return options, nil
}
