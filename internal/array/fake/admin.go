package fake

import "net/http"

func (a *Array) admin(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
