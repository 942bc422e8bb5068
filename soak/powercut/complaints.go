package main

import (
	"encoding/json"
	"strings"
)

// complaint is a line of a daemon's log that a power cut must not lead to.
type complaint struct {
	line string
	// volume is the volume ID, empty if the line has none.
	volume string
	// adopted: it was found without a record.
	adopted bool
}

// adopted is why data is retained that the records should know, and do not.
const adopted = "adopted"

// retainedClaim is in the error of a stage that is refused. The check asks for that.
const retainedClaim = "is retained since"

// notConnected is said of a handshake that takes too long. The check plays the controller, and a machine that is emulated may be
// slow; without a connection in the end it cannot list what is left, and says so.
const notConnected = "not connected to "

// complaints finds them: all errors, and what tells of a lost record.
func complaints(log string) []complaint {
	var found []complaint
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		var said struct {
			Level   string `json:"level"`
			Message string `json:"msg"`
			Reason  string `json:"reason"`
			Volume  string `json:"volumeID"`
			Error   string `json:"error"`
		}
		if json.Unmarshal([]byte(line), &said) != nil {
			// A panic is not written by the logger.
			if line != "" {
				found = append(found, complaint{line: line})
			}
			continue
		}
		if strings.Contains(said.Error, retainedClaim) || strings.HasPrefix(said.Message, notConnected) {
			continue
		}
		without := said.Message == "retained" && said.Reason == adopted
		if said.Level == "error" || without {
			found = append(found, complaint{line: line, volume: said.Volume, adopted: without})
		}
	}
	return found
}
