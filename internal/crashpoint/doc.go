// Package crashpoint gives names to the crash points of package kernel around changes
// that are not made there yet.
package crashpoint
