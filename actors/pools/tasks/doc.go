// Package tasks is the work on one resource: a task makes, attaches, copies, retains or deletes what it stands for, on the array and
// in the API server. A task is sequential code in a worker of its own; its actor, a subject of the kit, runs one at a time.
//
// What is wanted is in the resource before the array is asked, and what the array has answered is in its status after that. So a task
// may end at any instant: the next one for the resource reads it, looks at the array, and goes on.
package tasks
