// Package fakebucket is a store that speaks S3, in memory, for tests. It checks signatures, lengths and checksums by code of
// its own, counts what it is asked, and fails as tests say.
package fakebucket
