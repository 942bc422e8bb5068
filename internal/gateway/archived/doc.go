// Package archived shows the archive: copies of retained volumes in a bucket, which outlive their nodes. To the fleet each
// namespace in the bucket is one more node. It lists volumes, finds one by its name, answers what a node would answer
// about its files, and ends what is too old.
//
// # Whose a volume is
//
// A key says it, with the UID of a namespace. The gateway has chosen the key when it let a node upload the index; what
// the key and the index say beside that is the word of a node, or of whoever can write to the bucket. All of it is bounded and
// checked, and none of it opens a volume to anybody. The name of a namespace that exists is what the API server calls that
// UID; that of one that is deleted is the word of the key, and is shown to those alone who may see all namespaces.
//
// # A list
//
// What a list shows is in the keys of the indexes, the newest first. So a page costs one request to the bucket for each thousand
// volumes that it looks at, and reads no object. Which namespaces the bucket has is looked up each minute.
//
// # Reading
//
// A volume's files are read from its index and its pieces. Both are kept compressed in memory, within bounds, as long as they are
// used, and then until others need the room. A piece is read as a whole, and compared with its checksum in
// the index before any of its bytes is shown. An index is read as a stream, for each request again: nothing holds the
// entries of a volume with two million files.
//
// # Ends
//
// An archive ends when its key says so, or when someone deletes it: then its index goes, and it is listed no more. Pieces without an
// index go a day after the last of them was written. Nothing outside of the cluster's own keys is ever deleted. Each replica
// looks for what has ended; to do it twice does no harm.
package archived
