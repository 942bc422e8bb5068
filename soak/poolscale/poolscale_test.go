package main

import (
	"fmt"
	"net/http"
	"testing"
)

// TestPages: the PoolVolumes that are made up and those that are kept are one list, in pages.
func TestPages(t *testing.T) {
	k, err := startKubernetes(options{arrays: 2, volumes: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	kept := `{"apiVersion":"pools.katbox.io/v1alpha1","kind":"PoolVolume","metadata":{"name":"kept"}}`
	if err := k.make(t.Context(), poolVolumes, kept); err != nil {
		t.Fatal(err)
	}
	names, pools, next := map[string]bool{}, map[string]int{}, ""
	for range 10 {
		var page struct {
			Metadata struct{ Continue string }
			Items    []struct {
				Metadata struct{ Name string }
				Spec     struct{ PoolName string }
			}
		}
		url := fmt.Sprintf("%s%s?limit=4&continue=%s", k.front.URL, poolVolumes, next)
		if err := request(t.Context(), http.MethodGet, url, "", &page); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			names[item.Metadata.Name] = true
			pools[item.Spec.PoolName]++
		}
		if next = page.Metadata.Continue; next == "" {
			break
		}
	}
	if len(names) != 11 || !names["kept"] || !names[volumeName(1, 4)] || pools["array-00"] != 5 || pools["array-01"] != 5 {
		t.Errorf("names %v, pools %v", names, pools)
	}
}
