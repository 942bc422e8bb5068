// Package gatewaymetrics is what the gateway reports to Prometheus. [Metrics] has a method for every event,
// in the words of the gateway. A call is a few atomic additions; it neither waits nor fails. A nil
// *Metrics counts nothing.
//
// No label has a value that a user or a node chooses: names of namespaces, volumes, users and nodes
// are in the log, not here.
package gatewaymetrics
