// Package archived is the form of the archive: copies of retained volumes in a bucket. The node writes them, the gateway reads
// them. This package does no I/O.
//
// The content of an archived volume is the tar that internal/node/tarball makes of the whole volume. It is cut into pieces of
// [PieceSize]; the last one is shorter. Each piece is one object, compressed by itself with zstd, so that a range can be
// read without what is before it. The index is one more object, uploaded last: without an index there is no archive.
//
// Keys. CLUSTER is the UID of the namespace kube-system:
//
//	CLUSTER/NAMESPACE-UID/p/POD-UID/VOLUME-ID/NUMBER-SHA256    a piece: its number in 6 digits, the sum of the object
//	CLUSTER/NAMESPACE-UID/i/AGE-VOLUME-ID/SHOWN                an index
//
// AGE is the complement of the nanoseconds since 1970 of when the volume was retained, in 16 hex digits: the newest is the first of
// a list. SHOWN is what a list of volumes shows, so that a list reads no object: JSON, compressed with DEFLATE, in the URL's
// form of base64, with a slash after every 200 characters: a store that keeps objects as files makes a name of each part, which
// has at most 255 bytes. A key has at most [MaxKey] bytes. The gateway alone makes keys, and whose a volume is, the key says;
// what an index says about that is a word of the node.
//
// An index is a zstd stream of lines of JSON, each an object with one field:
//
//	{"archive":{...}}   the first line, a [Head]: the version of the form, the volume, and how much follows
//	{"p":{...}}         a [Piece], in their order
//	{"e":{...}}         an [Entry], in the order of the tar
//
// An index, and a key, may come from anyone who can write to the bucket. So all that is read is bounded, and checked: names lead
// nowhere else, entries are contiguous and each is in a directory that came before, and the pieces have the length of the tar.
package archived

import (
	"errors"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// PieceSize is how many bytes of the tar are in each piece except the last one.
	PieceSize = 8 << 20
	// MaxPiece is the longest object of a piece in bytes: what does not compress becomes a little longer.
	MaxPiece = PieceSize + 64<<10
	// MaxPieces is how many pieces an archive may have: 1 TiB of tar.
	MaxPieces = 1 << 17
	// MaxKey is the longest key in bytes. S3 takes 1,024.
	MaxKey = 900
	// MaxIndex is the longest index in bytes.
	MaxIndex = 64 << 20
	// MaxIndexText is how long its lines may be together.
	MaxIndexText = 512 << 20
	// MaxEntries is how many entries an index may have.
	MaxEntries = 2_000_000
	// MaxName is the longest name of an entry, or target of a link, in bytes.
	MaxName = 4096
	// MaxExtents is how many extents an entry may have.
	MaxExtents = 16 << 10
	// Block is what offsets in a tar are a multiple of.
	Block = 512
	// Trailer is how many bytes of a tar are behind its last entry.
	Trailer = 2 * Block

	// window bounds what zstd looks back at, on both sides: memory for each stream.
	window = 1 << 20
	// segment is how long a part of a key may be.
	segment = 200
	// maxLine is the longest line of an index in bytes: that of a file with all its extents.
	maxLine = 1 << 20
	// version is that of the form.
	version = 1
)

var (
	// ErrTooLarge: a volume does not fit into an index, or an index is larger than it may be.
	ErrTooLarge = errors.New("larger than an archive can be")
	// ErrForm: what was read is no index, no piece or no key.
	ErrForm = errors.New("not in the form of the archive")
	// ErrVersion: the index is of a later version of the form.
	ErrVersion = errors.New("a later version of Katbox has written it")
)

// Pieces returns how many pieces a tar of size bytes has.
func Pieces(size int64) int64 { return (size + PieceSize - 1) / PieceSize }

// PieceLength returns how many bytes of a tar of size bytes are in the piece with that number.
func PieceLength(size int64, number int) int64 { return min(PieceSize, size-int64(number)*PieceSize) }

// Archivable reports whether keys can name the volume: it and its pod have identifiers in the form that a kubelet and an API
// server give them.
func Archivable(p volume.Place) bool { return p.ID.FromKubelet() && p.Pod.FromKubelet() }
