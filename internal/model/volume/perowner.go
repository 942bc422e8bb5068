package volume

import (
	"fmt"
	"strconv"
	"strings"
)

// PerOwner is of how many pods of one owner the volumes stay that were retained: of the first ones and of the last ones.
// The zero PerOwner is all of them.
type PerOwner struct{ First, Last int }

// mostPerOwner bounds both numbers.
const mostPerOwner = 1000

// Check returns what is wrong with the numbers.
func (p PerOwner) Check() error {
	switch {
	case p.First < 0 || p.First > mostPerOwner:
		return fmt.Errorf("first is %d, it has to lie between 0 and %d", p.First, mostPerOwner)
	case p.Last < 0 || p.Last > mostPerOwner:
		return fmt.Errorf("last is %d, it has to lie between 0 and %d", p.Last, mostPerOwner)
	case p.Last == 0 && p.First > 0:
		return fmt.Errorf("last is missing: the newest pod of an owner has to stay")
	}
	return nil
}

// ParsePerOwner reads "FIRST,LAST", such as 1,5. An empty text is the zero PerOwner. The error quotes the text.
func ParsePerOwner(text string) (PerOwner, error) {
	if text == "" {
		return PerOwner{}, nil
	}
	first, last, ok := strings.Cut(text, ",")
	var p PerOwner
	var err error
	if p.First, err = strconv.Atoi(first); err == nil && ok {
		p.Last, err = strconv.Atoi(last)
	}
	if err != nil || !ok {
		return PerOwner{}, fmt.Errorf("%.100q is not FIRST,LAST, two numbers such as 1,5", text)
	}
	if err := p.Check(); err != nil {
		return PerOwner{}, fmt.Errorf("%.100q: %w", text, err)
	}
	return p, nil
}
