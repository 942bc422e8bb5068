package fakedriver

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/katbox/katbox/internal/model/api"
)

// serveFiles lists a directory, or describes an entry.
func (r *run) serveFiles(w http.ResponseWriter, q *http.Request) {
	id, values := q.PathValue("id"), q.URL.Query()
	path, err := pathOf(values)
	if err != nil {
		fail(w, err)
		return
	}
	v, reader, err := r.read(id)
	if err != nil {
		fail(w, err)
		return
	}
	defer r.stopReading(id, reader)
	list, err := r.list(v, path, values)
	switch {
	case reader.lost.Err() != nil:
		fail(w, failed(http.StatusGone, api.Expired, "the volume went"))
	case err != nil:
		fail(w, err)
	default:
		answer(w, list)
	}
}

// pathOf is the path of a request.
func pathOf(values url.Values) (string, error) {
	path, err := url.PathUnescape(strings.Trim(values.Get("path"), "/"))
	if err != nil {
		return "", badRequest(api.BadPath, err.Error())
	}
	return path, nil
}

// list lists all of a directory and cuts the page out of it.
func (r *run) list(v record, path string, values url.Values) (api.FileList, error) {
	list := api.FileList{Path: refOf(path), Entries: []api.Entry{}}
	full, info, err := r.find(v, path)
	if err != nil {
		return list, err
	}
	if values.Get("stat") == "true" {
		list.Entries = append(list.Entries, r.entry(v, path, info))
		return list, nil
	}
	if !info.IsDir() {
		return list, badRequest(api.NotRegularFile, "it is no directory")
	}
	depth, err1 := strconv.Atoi(cmp.Or(values.Get("depth"), "1"))
	limit, err2 := strconv.Atoi(cmp.Or(values.Get("limit"), "1000"))
	if err1 != nil || err2 != nil {
		return list, badRequest(api.BadParameter, "bad depth or limit")
	}
	all, err := r.below(v, full, path, depth, &list.Truncated)
	if err != nil {
		return list, err
	}
	after := values.Get("continue")
	for _, e := range all {
		if after != "" && compare(e.Ref, after) <= 0 {
			continue
		}
		if len(list.Entries) == limit {
			list.Continue = list.Entries[limit-1].Ref
			break
		}
		list.Entries = append(list.Entries, e)
	}
	return list, nil
}

// compare orders refs by their elements, in bytes.
func compare(a, b string) int {
	plain := func(ref string) []string {
		path, _ := url.PathUnescape(ref) // it was made by refOf
		return strings.Split(path, "/")
	}
	return slices.Compare(plain(a), plain(b))
}

// below are the entries of a tree, parents before children.
func (r *run) below(v record, full, path string, depth int, truncated *bool) ([]api.Entry, error) {
	dir, err := os.ReadDir(full)
	if err != nil {
		return nil, err
	}
	var all []api.Entry
	for _, one := range dir {
		info, err := one.Info()
		if err != nil {
			return nil, err
		}
		inside := strings.TrimPrefix(path+"/"+one.Name(), "/")
		e := r.entry(v, inside, info)
		all = append(all, e)
		if e.Type != api.Directory {
			continue
		}
		if depth == 1 {
			*truncated = true
			continue
		}
		more, err := r.below(v, full+"/"+one.Name(), inside, depth-1, truncated)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

var entryTypes = map[fs.FileMode]api.EntryType{
	0: api.File, fs.ModeDir: api.Directory, fs.ModeSymlink: api.Symlink, fs.ModeNamedPipe: api.FIFO, fs.ModeSocket: api.Socket,
}

// entry describes one name.
func (r *run) entry(v record, path string, info fs.FileInfo) api.Entry {
	st := info.Sys().(*syscall.Stat_t)
	full := r.data(v) + "/" + path
	e := api.Entry{
		Name: strings.ToValidUTF8(path[strings.LastIndexByte(path, '/')+1:], "\ufffd"), Ref: refOf(path), Type: entryTypes[info.Mode().Type()],
		Size: info.Size(), Allocated: st.Blocks * 512, Mode: fmt.Sprintf("%04o", st.Mode&0o7777), UID: st.Uid, GID: st.Gid,
		ModTime: info.ModTime(), Links: uint64(st.Nlink),
	}
	if mounts, err := mountsBelow(r.data(v)); err == nil && slices.Contains(mounts, full) && r.cfg.Bug != ReadsMounts {
		e.Type = api.Mount
	}
	if e.Type == api.Symlink {
		target, _ := os.Readlink(full) // it is for people
		e.Target = strings.ToValidUTF8(target, "\ufffd")
	}
	return e
}

// refOf encodes a path.
func refOf(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}
