// Package asked reads what a request for a volume's files asks for: its parameters, and which part of a file or an archive. The
// node answers such requests from the disk, and the gateway from the archive. The package knows neither.
package asked
