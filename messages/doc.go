// Package messages holds what the actors of Katbox say to one another: one file for each
// conversation, and on each message who sends it and who receives it.
//
//	gRPC handlers      pod watch, orphan search
//	     |                       |
//	     | PublishVolume         | PodsSeen
//	     | UnpublishVolume       | FindUnknown
//	     | VolumeStats           | AdoptVolume
//	     | Status, ProbeStore    |
//	     v                       v
//	+---------------------------------------+  MeasureDisk   +--------+
//	| supervisor: owns all volumes          | -------------> |  disk  |
//	| (awake: an actor, asleep: a record)   | <------------- |        |
//	+---------------------------------------+    Pressure    +--------+
//	 | requests,    ^        | MeasureSizes ^                   ^
//	 | DeleteVolume,| AtRest v              | SizesMeasured     |
//	 | PodsSeen,    | Stuck  +--------------+                   |
//	 | Resume       |        |    sizes     |                   |
//	 v              |        +--------------+                   |
//	+---------------------------+         Erase, NoSpace        |
//	| volume: one for each that | ------------------------------+
//	| is mounted or changing    |  ChangeRecord  +----------+
//	+---------------------------+ -------------> | recorder |
//	                                             +----------+
//
// Messages are orders (PublishVolume), questions (VolumeStats) or facts (Stuck). No one changes a
// message after it was sent. The To... interfaces say which actor may receive a message; their
// markers have pointer receivers, so that only pointers to messages can be sent.
package messages

// ToSupervisor is a message for the supervisor.
type ToSupervisor interface{ toSupervisor() }

// ToVolume is a message for a volume actor. Only the supervisor sends these.
type ToVolume interface{ toVolume() }

// ToRecorder is a message for the recorder.
type ToRecorder interface{ toRecorder() }

// ToDisk is a message for the disk actor.
type ToDisk interface{ toDisk() }

// ToSizes is a message for the sizes actor.
type ToSizes interface{ toSizes() }
