package follow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// TestPages: a list is read page by page, of the usual length or of another one.
func TestPages(t *testing.T) {
	for size, pages := range map[int64]int{0: 3, 300: 4} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			for i := range 2*pageSize + 7 {
				s.create(fmt.Sprintf("v-%04d", i))
			}
			s.follow(func(c *Config[*v1alpha1.PoolVolume]) { c.Page = size })
			if s.lists != pages || s.listing != 1 || s.listed != 1 {
				t.Errorf("%d pages, want %d; %d lists began, %d ended", s.lists, pages, s.listing, s.listed)
			}
			s.want("after the list", true)
			s.change("v-0001")
			s.create("new")
			s.remove("v-0002")
			s.want("after changes", true)
			if s.last["v-0002"] == "" {
				t.Error("a deletion comes without the object as it was last")
			}
		})
	}
}

// TestPageThatHasExpired: the list begins anew, and nothing is logged.
func TestPageThatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a", "b", "c")
		s.refuse = func(verb string) error {
			if verb == "list" && s.lists == 2 {
				return apierrors.NewResourceExpired("the continue token is too old")
			}
			return nil
		}
		s.follow(func(c *Config[*v1alpha1.PoolVolume]) { c.Page = 2 })
		if s.listed != 0 {
			t.Error("half a list is one")
		}
		s.remove("a") // which the first page had
		time.Sleep(usualWaits.Longest)
		s.want("after the second list", true)
		if s.lists != 3 || s.listing != 2 || s.listed != 1 || len(s.log) > 0 {
			t.Errorf("%d pages, %d lists began, %d ended; logged is %q", s.lists, s.listing, s.listed, s.log)
		}
	})
}

// TestWatchGoesOn: after its time, and after a break, a watch goes on where it was, without a list.
func TestWatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a", "b")
		s.follow()
		time.Sleep(time.Minute)
		s.server.Cut()
		s.create("c")
		s.remove("a")
		s.want("after a watch that has ended", true)
		time.Sleep(time.Minute)
		s.fails(away)
		s.create("d")
		s.change("b")
		synctest.Wait()
		if s.up {
			t.Error("what cannot be watched is said to be watched")
		}
		time.Sleep(10 * time.Minute)
		s.fails(nil)
		time.Sleep(usualWaits.Longest)
		s.want("after a break", true)
		if s.lists != 1 {
			t.Errorf("%d lists, want 1: the watch can go on", s.lists)
		}
		if s.ups != 3 || s.logged("cannot list and watch volumes; retrying; meanwhile they are old") != 1 ||
			s.logged("watching volumes again") != 1 {
			t.Errorf("reported %d times; logged is %q", s.ups, s.log)
		}
	})
}

// TestBookmarks: a watch goes on at the version of a bookmark. The one at which the last object of the kind changed may have
// expired by then.
func TestBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a")
		s.follow()
		for range 3 {
			s.must(s.client.Create(t.Context(), &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}))
		}
		synctest.Wait()
		s.server.Compact()
		time.Sleep(2*watchTime + time.Minute)
		s.create("b")
		s.want("after some watches", true)
		if s.lists != 1 || len(s.watches) < 2 || s.watches[1] == s.watches[0] || len(s.log) > 0 {
			t.Errorf("%d lists, watches at %q; logged is %q", s.lists, s.watches, s.log)
		}
	})
}

// TestExpired: after 410 Gone the objects are listed again, and those that are not there any more are found. It makes no
// difference whether the watch begins with the error, or is refused.
func TestExpired(t *testing.T) {
	for name, refused := range map[string]bool{"an event": false, "an answer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, "a", "b", "c")
				s.follow()
				time.Sleep(time.Minute)
				s.fails(away)
				s.remove("a")
				s.change("b")
				s.create("d")
				s.server.Compact()
				expired := refused
				s.fails(func(verb string) error {
					if verb == "watch" && expired {
						expired = false
						return apierrors.NewResourceExpired("too old")
					}
					return nil
				})
				time.Sleep(2 * usualWaits.Longest)
				s.want("after the version has expired", true)
				if s.lists != 2 || s.listed != 2 || s.logged("too old") > 0 {
					t.Errorf("%d lists, want 2; logged is %q", s.lists, s.log)
				}
				s.create("a")
				s.want("after a change", true)
			})
		})
	}
}

// TestWithoutKeys: what was deleted while no watch ran is not reported, and what a watch sees is.
func TestWithoutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a", "b")
		var gone []string
		s.follow(func(c *Config[*v1alpha1.PoolVolume]) {
			c.Key, c.Listing, c.Listed, c.Up = nil, nil, nil, nil
			c.Gone = func(key string, last *v1alpha1.PoolVolume) { gone = append(gone, key+"/"+last.Name) }
		})
		s.remove("a")
		synctest.Wait()
		s.fails(away)
		s.remove("b")
		s.server.Compact()
		s.fails(nil)
		time.Sleep(2 * usualWaits.Longest)
		synctest.Wait()
		if s.lists != 2 || !reflect.DeepEqual(gone, []string{"/a"}) {
			t.Errorf("%d lists, gone are %q", s.lists, gone)
		}
	})
}

// TestBackOff: whatever fails is tried less and less often, and each cause is logged once.
func TestBackOff(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("poolvolumes").GroupResource(), "", errors.New("no right"))
	for name, prepare := range map[string]func(*scene){
		"no right to list": func(s *scene) { s.refuse = func(string) error { return forbidden } },
		"no right to watch": func(s *scene) {
			s.refuse = func(verb string) error { return map[string]error{"watch": forbidden}[verb] }
		},
		"a watch that ends at once": func(s *scene) {
			s.replaced = func(string) watch.Interface {
				w := watch.NewRaceFreeFake()
				w.Stop()
				return w
			}
		},
		"a watch with an error": func(s *scene) {
			s.replaced = func(string) watch.Interface {
				w := watch.NewRaceFreeFake()
				w.Error(&apierrors.NewTimeoutError("slow", 1).ErrStatus)
				return w
			}
		},
		"a watch of something else": func(s *scene) {
			s.replaced = func(string) watch.Interface {
				w := watch.NewRaceFreeFake()
				w.Add(&v1alpha1.Pool{})
				return w
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, "a")
				prepare(s)
				attempts := 0
				if replaced := s.replaced; replaced != nil {
					s.replaced = func(version string) watch.Interface { attempts++; return replaced(version) }
				}
				s.follow()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				attempts += s.lists + len(s.watches)
				if attempts < 20 || attempts > 60 || len(s.log) != 1 {
					t.Errorf("%d attempts in ten minutes; logged is %q", attempts, s.log)
				}
				s.set(func() { s.replaced = nil })
				s.fails(nil)
				time.Sleep(usualWaits.Longest)
				s.want("at last", true)
			})
		})
	}
}

// TestExpected: a failure that is in order is retried, and not logged.
func TestExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a")
		s.refuse = func(string) error {
			return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("poolvolumes").GroupResource(), "")
		}
		s.follow(func(c *Config[*v1alpha1.PoolVolume]) { c.Expected = apierrors.IsNotFound })
		time.Sleep(time.Hour)
		s.fails(nil)
		time.Sleep(usualWaits.Longest)
		s.want("at last", true)
		if len(s.log) > 0 {
			t.Errorf("logged is %q", s.log)
		}
	})
}

// TestSilence: an API server that answers nothing holds nothing up for ever: neither a page nor a watch that it does not end.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a")
		silent := true
		s.replaced = func(string) watch.Interface { return watch.NewRaceFreeFake() } // for ever
		s.follow(func(c *Config[*v1alpha1.PoolVolume]) {
			list := c.List
			c.List = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if silent {
					silent = false
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return list(ctx, o)
			}
		})
		time.Sleep(pageLimit + usualWaits.Longest)
		s.want("after the page", true)
		s.set(func() { s.replaced = nil })
		s.create("b")
		time.Sleep(2*watchTime + watchGrace)
		s.want("after the watch", true)
	})
}

// TestHeard: each event of a watch, and each bookmark, says that the API server is heard; the beginning and the end of a watch do
// not. A watch lasts as long as is said.
func TestHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "a")
		var server *watch.RaceFreeFakeWatcher
		s.replaced = func(string) watch.Interface { server = watch.NewRaceFreeFake(); return server }
		heard, seconds := 0, int64(0)
		s.follow(func(c *Config[*v1alpha1.PoolVolume]) {
			begin := c.Watch
			c.Watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				seconds = *o.TimeoutSeconds
				return begin(ctx, o)
			}
			c.Heard, c.Time = func() { heard++ }, 20*time.Second
		})
		want := func(when string, n int) {
			t.Helper()
			if synctest.Wait(); heard != n {
				t.Errorf("%s: heard %d times, want %d", when, heard, n)
			}
		}
		want("at the beginning", 0)
		volume := poolVolume("a")
		volume.ResourceVersion = "7"
		server.Modify(volume)
		want("after a change", 1)
		server.Action(watch.Bookmark, volume)
		want("after a bookmark", 2)
		server.Delete(volume)
		want("after a deletion", 3)
		server.Stop()
		time.Sleep(time.Minute)
		want("after another watch began", 3)
		server.Error(&apierrors.NewTimeoutError("slow", 1).ErrStatus)
		want("after an error", 3)
		if seconds < 20 || seconds >= 40 {
			t.Errorf("a watch is to last %d s", seconds)
		}
	})
}
