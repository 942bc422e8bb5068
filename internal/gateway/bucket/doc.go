// Package bucket is the S3 API as far as the gateway needs it: list, read a part, look, delete, and sign a URL with which a
// node uploads one object. It knows nothing of what is in the objects.
//
// It speaks to the store with net/http, and signs with version 4 of AWS's signatures: five kinds of requests are less than the
// client of any library, and each answer is bounded here, before it is in memory. Stores that speak S3 will do: AWS, Google
// Cloud Storage with HMAC keys, MinIO, Ceph, Versity and others. Azure's does not.
//
// # Credentials
//
// They are files in a directory, as a Secret is mounted: access-key-id, secret-access-key, and session-token if there is one.
// They are read again each half minute, so a Secret that changes needs no restart.
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
// failure of its own, or refuses the credentials. The caller decides whether to ask again: nothing here repeats a request.
package bucket
