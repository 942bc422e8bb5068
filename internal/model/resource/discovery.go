package resource

import (
	_ "embed" // for the document of OpenAPI
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The paths of discovery and of OpenAPI.
const (
	GroupPath   = "/apis/" + Group
	VersionPath = GroupPath + "/" + Version
	OpenAPIPath = "/openapi/v3"
	// SchemaPath is the OpenAPI document of the version.
	SchemaPath = OpenAPIPath + VersionPath
)

//go:embed openapi.json
var schemaDocument []byte

// Documents returns the bodies of discovery and OpenAPI by their paths. They are always the same, so
// that they depend on no node.
//
// Discovery advertises get and list alone. If it had delete, the namespace controller would delete
// the volumes of each namespace that is deleted; if it also had list and watch, the garbage collector
// would watch all volumes of the cluster.
func Documents() map[string][]byte {
	version := metav1.GroupVersionForDiscovery{GroupVersion: GroupVersion.String(), Version: Version}
	return map[string][]byte{
		GroupPath: encode(metav1.APIGroup{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"},
			Name:     Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}),
		VersionPath: encode(metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: GroupVersion.String(),
			APIResources: []metav1.APIResource{{
				Name: Resource, SingularName: Singular, ShortNames: []string{Short}, Namespaced: true, Kind: Kind,
				Verbs: metav1.Verbs{"get", "list"},
			}},
		}),
		OpenAPIPath: encode(map[string]any{"paths": map[string]any{
			VersionPath[1:]: map[string]string{"serverRelativeURL": SchemaPath + "?hash=" + Digest(schemaDocument)},
		}}),
		SchemaPath: schemaDocument,
	}
}

// Digest returns a short name of a document's contents.
func Digest(document []byte) string { return format(hash(string(document)), 12) }

// encode encodes a value that can always be encoded.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}
