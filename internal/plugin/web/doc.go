// Package web is the local server behind "kubectl katbox ui": a page in the user's browser that reads
// retained volumes with the user's own credentials. Files of pods are hostile, and so are other web
// sites, and other users of the machine. What they could try, and what stops it:
//
//   - Another machine connects. Both listeners are on 127.0.0.1.
//   - Another local user, or a program that finds the port, asks. Each request needs a cookie, which
//     only the first URL gives, once. The URL is on the user's terminal, and in a private file for the
//     browser, never in the arguments of a process.
//   - A server on another port of 127.0.0.1 gets the cookie, because ports do not separate cookies.
//     Requests for data need a key too, which the page keeps in the storage of its own origin.
//   - A web site has the browser send requests, by its own address or by a name that it lets point to
//     127.0.0.1. Host, Origin and Sec-Fetch-Site are checked for each method, the cookie is
//     SameSite=Strict, and the key is in a header that no other site can set.
//   - A script runs in the page, or sends what it finds elsewhere. The Content-Security-Policy allows
//     the embedded files alone, no text becomes HTML or script, and no other host is reached.
//   - A file runs as HTML, SVG or PDF. What the cluster answers is JSON, plain text or bytes, with an
//     empty sandbox. Downloads and images come from a second port, so from another origin, which reads
//     no cookie: a ticket names one file, for one request within a minute. The download of a file that
//     was cut may go on, for who knows the ETag that came with its beginning. An image is png, jpeg,
//     gif or webp by its first bytes, or it is refused.
//   - The page asks for something else than retained volumes. The paths are listed, character by
//     character; of a request and of an answer, only listed headers pass. The one body that passes is a
//     pin or the end of one, and it is written anew. Of namespaces the page gets the names alone.
//
// A refused request gets 403 and the same text in all cases, so that a stranger learns nothing.
// The server does not defend against programs that run as the user: they can read what kubectl reads.
package web
