// Package unclaimed is the actor that looks once a day for volumes which neither a claim nor a PersistentVolume has. It deletes
// nothing: it makes an event of each.
package unclaimed
