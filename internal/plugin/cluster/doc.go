// Package cluster is how a user sees the retained volumes of a cluster: through the Kubernetes API, with
// the user's own credentials. It lists, describes and deletes them, and reads their files.
//
// An answer of the API server that is an error is an [*api.Error], also where it is not Katbox' gateway
// that refuses. [Client.Explain] says what a person can do about it, and which exit code it has. It may
// ask the API server for that, so it is for people and not for programs.
//
// A request that is refused because there are too many (429) is sent again a few times, since the
// gateway says when. No other request is repeated here.
//
// The page of kubectl katbox ui sends its requests through [Client.Forward], which passes on those for
// retained volumes and nothing else of the API.
package cluster
