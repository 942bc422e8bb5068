// Package versitygw pins a real server that speaks S3, for tests of the archive. Its own test is that of internal/gateway/bucket,
// of which the stores in memory that other tests use are only a picture.
package versitygw
