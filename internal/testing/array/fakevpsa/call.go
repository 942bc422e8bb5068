package fakevpsa

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The numbers that an array is known to answer with. For all other errors its number is not known: a
// client must not need them to differ.
const (
	statusOK          = 0
	statusCredentials = 5
	noVolume          = 10081
	noServer          = 10086
	otherError        = 10000
	statusSubmitted   = 10002
)

// refusal is an answer whose status is not 0.
type refusal struct {
	status int
	text   string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// call is one request to the array.
type call struct {
	method, path string
	// pattern is the route's, id what stands in the place of its asterisk.
	pattern, id string
	params      params
	now         time.Time
	start       int64
	limit       int64
	// changed are the IDs of what was changed or made.
	changed []string
}

// did notes that an object was changed or made.
func (c *call) did(id string) { c.changed = append(c.changed, id) }

// name of the call, for counts and changes.
func (c *call) name() string { return c.method + " " + c.pattern }

func (c *call) change(object string, lost bool) Change {
	fields := map[string][]string{}
	for key, values := range c.params {
		if !strings.Contains(key, "secret") && !strings.Contains(key, "password") {
			fields[key] = values
		}
	}
	return Change{Time: c.now, Method: c.method, Path: c.path, Params: fields, Call: c.name(), Object: object, Lost: lost}
}

type handler func(*state, *call) (answer, *refusal)

type route struct {
	method, pattern string
	handle          handler
}

// routes are looked through in this order.
var routes = []route{
	{http.MethodGet, "/api/vpsaversion.json", (*state).version},
	{http.MethodGet, "/api/config.json", (*state).config},
	{http.MethodGet, "/api/vcontrollers.json", (*state).controllers},
	{http.MethodPost, "/api/settings/set_recycle_bin.json", (*state).setRecycleBin},

	{http.MethodGet, "/api/pools.json", (*state).listPools},
	{http.MethodGet, "/api/pools/*.json", (*state).getPool},
	{http.MethodGet, "/api/pools/*/volumes.json", (*state).listVolumesOfPool},
	{http.MethodGet, "/api/pools/*/volumes_in_recycle_bin.json", (*state).listBin},
	{http.MethodPost, "/api/pools/*/update_protection.json", (*state).protectPool},

	{http.MethodGet, "/api/volumes.json", (*state).listVolumes},
	{http.MethodGet, "/api/volumes/free.json", (*state).listFreeVolumes},
	{http.MethodGet, "/api/volumes/*.json", (*state).getVolume},
	{http.MethodPost, "/api/volumes.json", (*state).createVolume},
	{http.MethodPut, "/api/volumes/*.json", (*state).updateVolume},
	{http.MethodDelete, "/api/volumes/*.json", (*state).deleteVolume},
	{http.MethodDelete, "/api/volumes/*/delete_volume_from_recycle_bin.json", (*state).purgeVolume},
	{http.MethodPost, "/api/volumes/*/expand.json", (*state).expandVolume},
	{http.MethodPost, "/api/volumes/*/rename.json", (*state).renameVolume},
	{http.MethodPost, "/api/volumes/*/update_comment.json", (*state).commentVolume},
	{http.MethodPut, "/api/volumes/*/export_name.json", (*state).exportVolume},
	{http.MethodGet, "/api/volumes/*/servers.json", (*state).listServersOfVolume},
	{http.MethodPost, "/api/volumes/*/detach.json", (*state).detach},
	{http.MethodPost, "/api/volumes/*/attach_permissions.json", (*state).permit},

	{http.MethodGet, "/api/servers.json", (*state).listServers},
	{http.MethodGet, "/api/servers/*.json", (*state).getServer},
	{http.MethodPost, "/api/servers.json", (*state).createServer},
	{http.MethodPost, "/api/servers/*/config.json", (*state).configServer},
	{http.MethodPost, "/api/servers/*/rename.json", (*state).renameServer},
	{http.MethodDelete, "/api/servers/*.json", (*state).deleteServer},
	{http.MethodGet, "/api/servers/*/volumes.json", (*state).listVolumesOfServer},
	{http.MethodPost, "/api/servers/*/volumes.json", (*state).attach},

	{http.MethodGet, "/api/snapshots.json", (*state).listSnapshots},
	{http.MethodGet, "/api/snapshots/*.json", (*state).getSnapshot},
	{http.MethodPost, "/api/snapshots/*/rename.json", (*state).renameSnapshot},
	{http.MethodDelete, "/api/snapshots/*.json", (*state).deleteSnapshot},
	{http.MethodGet, "/api/consistency_groups/*/snapshots.json", (*state).listSnapshotsOfGroup},
	{http.MethodPost, "/api/consistency_groups/*/snapshots.json", (*state).createSnapshot},
	{http.MethodPost, "/api/consistency_groups/*/clone.json", (*state).clone},
}

// find returns the route of a request, and what stands in the place of its asterisk.
func find(method, path string) (*route, string) {
	for i := range routes {
		if routes[i].method == method {
			if id, ok := match(routes[i].pattern, path); ok {
				return &routes[i], id
			}
		}
	}
	return nil, ""
}

// match reports whether a path has the form of a pattern, whose asterisk stands for one element, or the
// beginning of one.
func match(pattern, path string) (id string, ok bool) {
	before, after, ok := strings.Cut(pattern, "*")
	if !ok {
		return "", pattern == path
	}
	rest, ok := strings.CutPrefix(path, before)
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(rest, after)
	return id, ok && id != "" && !strings.Contains(id, "/")
}
