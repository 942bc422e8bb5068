package verbs

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
)

// incomplete is an error of another package that knows its exit code.
type incomplete struct{ error }

func (incomplete) ExitCode() int { return CodeIncomplete }

func TestExitCodes(t *testing.T) {
	why := errors.New("why")
	for _, test := range []struct {
		err  error
		want int
	}{
		{why, CodeFailed},
		{WrongUsage("x"), CodeUsage},
		{fmt.Errorf("x: %w", NoVolume("y")), CodeNoVolume},
		{fmt.Errorf("x: %w", incomplete{why}), CodeIncomplete},
		{api.NewError(api.NotFound, "x"), CodeNoVolume},
		{api.NewError(api.Expired, "x"), CodeNoVolume},
		{api.NewError(api.Conflict, "x"), CodeFailed},
		{WithCode(CodeFailed, api.NewError(api.NotFound, "x")), CodeFailed},
	} {
		if got := CodeOf(test.err); got != test.want {
			t.Errorf("%v has the code %d, want %d", test.err, got, test.want)
		}
	}
	if WithCode(CodeUsage, nil) != nil {
		t.Error("no error became one")
	}
	if !HasCode(fmt.Errorf("x: %w", api.NewError(api.Conflict, "x")), http.StatusConflict) {
		t.Error("the code of a wrapped answer is not seen")
	}
}
