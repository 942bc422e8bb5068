// Package messages holds what the actors of Katbox say to one another. Reading
// it explains the system: one file for each conversation, and on each message
// who sends it and who receives it.
//
// Messages are orders (PublishVolume), questions (Wake) or facts (Stuck). They
// are not changed after they were sent. The To… interfaces say which actor may
// receive a message; their markers have pointer receivers, so that only
// pointers to messages can be sent.
package messages

// ToSupervisor is a message for the supervisor.
type ToSupervisor interface{ toSupervisor() }

// ToVolume is a message for a volume actor. Only the supervisor sends these.
type ToVolume interface{ toVolume() }

// ToRetention is a message for the retention actor.
type ToRetention interface{ toRetention() }

// ToPressure is a message for the pressure actor.
type ToPressure interface{ toPressure() }

// ToRecorder is a message for the recorder.
type ToRecorder interface{ toRecorder() }

// ToEraser is a message for the eraser.
type ToEraser interface{ toEraser() }

// ToSurveyor is a message for the surveyor.
type ToSurveyor interface{ toSurveyor() }
