// Package satoken reads the tokens of ServiceAccounts without asking the API server about each: it verifies them with the keys
// that the API server publishes for this purpose (/openid/v1/jwks).
//
// [Keys.Read] accepts a token only if all of this holds:
//
//   - It is signed with RS256, ES256, ES384 or ES512, by the published key that it names, and with that key's algorithm.
//   - Its issuer is the one that the API server names (/.well-known/openid-configuration), and one audience is ours.
//   - It says since when and until when it is valid, and this is now, without leeway.
//   - It is bound to a pod, and to nothing else, and names namespace, ServiceAccount, pod and node, with their UIDs.
//
// Any other token is [ErrUnclear]. That is no refusal: the token may be of an earlier issuer, or of an API server that does not
// name nodes (before 1.30). The caller asks the API server about it.
//
// # What it does not do
//
// A valid token may be that of a pod or a ServiceAccount that was deleted; a signature does not tell. The caller knows.
//
// # What others control
//
// Anybody may send a token: those over 8 KiB are not parsed, and nothing but the header of a token is believed before its
// signature is verified. The keys are read again when they are half a minute old, and believed for a minute. A token with an
// unknown key is a reason to read them sooner, after a rotation, but not more than once in ten seconds. A reading goes on when the
// client that caused it leaves.
package satoken
