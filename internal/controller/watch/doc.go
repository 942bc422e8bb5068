// Package watch tells what objects the API server has, and how they change. It passes each object on
// and keeps nothing of it but the name: with hundreds of thousands of objects a cache would take more
// memory than all else, and so does client-go's Reflector, which collects a list before it passes it on.
//
// Objects of one kind are passed on one after the other, in the API server's order; after a broken watch
// an object may be passed on again. What was deleted while no watch ran is found by its name.
package watch
