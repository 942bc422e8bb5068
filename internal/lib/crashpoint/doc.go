// Package crashpoint ends the process by SIGKILL where a test says so: right before a change, or right
// after it, so that a test can start the program again and check every promise. Only a program that
// was built with the tag crashpoints has such points.
package crashpoint
