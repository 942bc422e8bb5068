package main

import "context"

// onlyOnce looks whether anything was made twice on the array: by its journal, in which lost answers are too.
func (r *run) onlyOnce(ctx context.Context) {
	changes, err := r.array.changes(ctx)
	if err != nil {
		r.found.broken(Once, nil, "the array's journal: %v", err)
		return
	}
	for _, what := range doubled(changes) {
		r.found.broken(Once, nil, "%s", what)
	}
}

// doubled are the creations that came twice. A volume is expanded at most once here.
func doubled(changes []change) (all []string) {
	seen := make(map[string]bool)
	for _, c := range changes {
		what := ""
		switch c.Call {
		case "POST /api/volumes.json", "POST /api/consistency_groups/*/clone.json":
			for _, key := range []string{"name", "clone_name", "display_name"} {
				for _, name := range c.Params[key] {
					what = c.Call + " " + name
				}
			}
		case "POST /api/volumes/*/expand.json":
			what = c.Call + " " + c.Object
		}
		if what != "" && seen[what] {
			all = append(all, "twice on the array: "+what)
		}
		seen[what] = true
	}
	return all
}
