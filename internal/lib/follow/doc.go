// Package follow lists the objects of one kind in the Kubernetes API, and watches them from there on.
//
// It passes each object on and keeps none, at most a key. With hundreds of thousands of objects a cache takes more memory than
// all else in a program, and client-go's Reflector collects a whole list before it passes it on. Where objects are few and are
// looked up by name, an informer is simpler: the gateway has one of the namespaces, and one of the ConfigMap of the API server's
// certificate authorities.
//
// Lists are read page by page. A watch that ends is followed by the next one at the resource version that it has reached,
// by an event or a bookmark. Only where the API server no longer has that version (410 Gone) the objects are listed again. A failure
// is logged once and retried with back-off.
//
// Objects come one after the other, in the API server's order, from one goroutine. After a new list an object may come again.
package follow
