// Package index is what the controller knows of all custom resources, and what may be done by that.
//
// [Index] holds the resources in little memory. The watches feed it, and so does each task that changes a resource, at once: no
// decision hangs on a watch event that is late. [Admission] decides by it, and by what is under way, on each request that concerns
// several resources. Only the supervisor's turn uses them. They ask no one, and send nothing but answers.
package index
