package fakevpsa_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// client sends requests as they are.
type client struct {
	t     *testing.T
	http  http.Client
	url   string
	token string
}

func newArray(t *testing.T, o fakevpsa.Options) (*fakevpsa.Array, *client) {
	t.Helper()
	a, err := fakevpsa.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a, &client{t, http.Client{Transport: a.Transport()}, "http://array", "token"}
}

// send returns what is in the envelope.
func (c *client) send(method, path, body string) (response map[string]any, err error) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("X-Access-Key", c.token)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d", answer.StatusCode)
	}
	var envelope struct{ Response map[string]any }
	err = json.NewDecoder(answer.Body).Decode(&envelope)
	return envelope.Response, err
}

// ask returns the answer to a request that must be answered with a status.
func (c *client) ask(status float64, method, path, body string) map[string]any {
	c.t.Helper()
	response, err := c.send(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	if response["status"] != status {
		c.t.Fatalf("%s %s %s: %v, want status %v", method, path, body, response, status)
	}
	return response
}

func (c *client) do(method, path, body string) map[string]any {
	c.t.Helper()
	return c.ask(0, method, path, body)
}

// TestLifeOfAVolume: each call that a client needs, once.
func TestLifeOfAVolume(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	id := c.do("POST", "/api/volumes.json", `{"name":"a","capacity":"5G","pool":"pool-00000001","block":"YES"}`)["vol_name"].(string)
	server := c.do("POST", "/api/servers.json", `{"display_name":"n","iqn":"iqn.x"}`)["server_name"].(string)
	c.do("POST", "/api/servers/"+server+"/volumes.json", `{"volume_name":"`+id+`","readonly":"NO","force":"YES"}`)
	if at := a.Attachments(); len(at) != 1 || at[0].Volume != id || at[0].Server != server || at[0].LUN != 0 {
		t.Errorf("attachments %+v", at)
	}
	c.ask(10000, "DELETE", "/api/volumes/"+id+".json", `{"force":"YES"}`)
	c.do("POST", "/api/volumes/"+id+"/detach.json", `{"servers":"`+server+`","force":"YES"}`)
	c.ask(10086, "POST", "/api/volumes/"+id+"/detach.json", `{"servers":"`+server+`","force":"YES"}`)
	c.do("POST", "/api/volumes/"+id+"/expand.json", `{"capacity":"5G"}`)
	if v, _ := a.Volume("a"); v.Size != 10 {
		t.Errorf("expanded to %d GB", v.Size)
	}
	c.do("DELETE", "/api/volumes/"+id+".json", `{"force":"YES"}`)
	c.ask(10081, "DELETE", "/api/volumes/"+id+".json", `{"force":"YES"}`)
	c.do("DELETE", "/api/servers/"+server+".json", "")
	if len(a.Volumes())+len(a.Servers()) != 0 || len(a.RecycleBin()) != 1 {
		t.Error("something is left, or not in the recycle bin")
	}
}
