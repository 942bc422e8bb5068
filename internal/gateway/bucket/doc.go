// Package bucket is the S3 API as far as the gateway needs it: list, read an object, look, delete, and sign a URL with which a
// node uploads one object. It knows nothing of what is in the objects.
//
// It is minio-go behind an interface of its own. Stores that speak S3 will do: AWS, Google Cloud Storage with HMAC keys, MinIO, Ceph,
// Versity and others. Azure's does not. Answers are bounded by the transport, and no request is repeated: the caller decides.
//
// # Credentials
//
// They are files in a directory, as a Secret is mounted: access-key-id, secret-access-key, and session-token if there is one.
// They are read again each half minute, so a Secret that changes needs no restart. Without a directory they are those that AWS
// gives a pod: the role of its ServiceAccount, or of its node.
//
// # Signed uploads
//
// A signed URL is good for one PUT of one object, for the time that the caller says. Its signature covers the length and
// the SHA-256 of the object, in the headers Content-Length and x-amz-checksum-sha256: who has such a URL can
// write the bytes that were announced, as often as he likes until it expires, and no others. [Bucket.Probe] finds out
// whether the store heeds that.
//
// # Errors
//
// [ErrNotFound] is the answer of a store; [ErrAway] is wrapped by the error of a store that does not answer, answers with a
// failure of its own, or refuses the credentials.
package bucket
