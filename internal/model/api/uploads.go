package api

import "time"

// PhaseArchived is the phase of a volume that no node has any more, and the archive has.
const PhaseArchived = "Archived"

const (
	// UploadsPath takes UploadAnswers.
	UploadsPath = "/v1/uploads"
	// UploadIndexNumber stands for the index in place of the number of a piece.
	UploadIndexNumber = -1
)

// UploadAsk asks for a URL that takes one object of the archive: a piece of a volume, or its index.
type UploadAsk struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	PodUID    string `json:"podUID"`
	// Owner and Seal are what a gateway has answered about the pod: an [OwnerAnswer].
	Owner Owner  `json:"owner"`
	Seal  string `json:"seal,omitempty"`
	// Piece or Index is set.
	Piece *UploadPiece `json:"piece,omitempty"`
	Index *UploadIndex `json:"index,omitempty"`
}

// Number is what the answer has as its Number.
func (a UploadAsk) Number() int {
	if a.Piece == nil {
		return UploadIndexNumber
	}
	return a.Piece.Number
}

// UploadPiece is a piece, see internal/model/archived. Length and SHA256, in hex digits, are those of the object.
type UploadPiece struct {
	Number int    `json:"number"`
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
}

// UploadIndex is an index. All its pieces are in the bucket.
type UploadIndex struct {
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
	Pieces int    `json:"pieces"`
	// Shown is the volume as lists are to show it. Whose it is, and where it was, the gateway says itself.
	Shown Volume `json:"shown"`
}

// UploadAnswers is the body of a POST to UploadsPath.
type UploadAnswers struct {
	Items []UploadAnswer `json:"items"`
}

// UploadAnswer answers an UploadAsk.
type UploadAnswer struct {
	ID string `json:"id"`
	// Number is that of the piece, or UploadIndexNumber.
	Number int `json:"number"`
	// SHA256 is that of the ask: another object may have been asked for meanwhile.
	SHA256 string `json:"sha256"`
	// URL takes the object by PUT, with these headers, until Expires by the clock of the gateway.
	URL     string            `json:"url,omitempty"`
	Header  map[string]string `json:"header,omitempty"`
	Expires time.Time         `json:"expires,omitzero"`
	// There: the bucket has the object already, or the volume has an index already.
	There bool `json:"there,omitempty"`
	// Until is when the archive ends, in the answer for an index.
	Until time.Time `json:"until,omitzero"`
	// Refused is why there is no URL. Retry: the same ask may be answered later.
	Refused string `json:"refused,omitempty"`
	Retry   bool   `json:"retry,omitempty"`
}

// UploadsTaken is the answer to a POST to UploadsPath.
type UploadsTaken struct {
	// Taken is how many of the answers the node has waited for.
	Taken int `json:"taken"`
}
