package hub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/model/api"
)

const (
	// mostLine bounds a line of the stream of summaries.
	mostLine = 1 << 20
	// lineRate and lineBurst bound how many lines a second are read, of which each KiB counts as one
	// more. A node sends no more than 20; what comes faster waits in the node.
	lineRate  = 50
	lineBurst = 2 * mostLine >> 10
)

// hear reads what the node says without being asked, until the stream ends. It returns why.
func (c *connection) hear() error {
	response, err := c.roundTrip(c.hearing, http.MethodGet, api.SummaryPath, nil)
	if err != nil {
		return fmt.Errorf("ask for summaries: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: it answered %s to a request for summaries", errProtocol, response.Status)
	}
	pace := rate.NewLimiter(lineRate, lineBurst)
	lines := newLines(response.Body)
	for {
		line, err := lines.next()
		if err != nil {
			return err
		}
		// What decodes a line needs more stack than what waits for one, and a stack that has grown stays so for a while.
		taken := make(chan error)
		go func() { taken <- c.take(line) }()
		if err := <-taken; err != nil {
			return err
		}
		c.alive()
		if err := pace.WaitN(c.hearing, 1+len(line)>>10); err != nil {
			return err
		}
	}
}

// take takes one summary.
func (c *connection) take(line []byte) error {
	if c.registry.Pools != nil {
		return c.takePools(line)
	}
	var s summary
	if err := json.Unmarshal(line, &s); err != nil {
		if errors.Is(err, errProtocol) {
			return err
		}
		return fmt.Errorf("%w: read a summary: %w", errProtocol, err)
	}
	if err := c.takeWaiting(s.Archive, s.Time); err != nil {
		return err
	}
	if !s.Full {
		if err := c.holdings.change(s.Holdings); err != nil {
			return err
		}
		c.ask(s.Asks)
		c.upload(s.Uploads)
		return nil
	}
	if err := c.holdings.set(s.Holdings); err != nil {
		return err
	}
	older, ok := c.node.has(c)
	if !ok {
		return nil
	}
	for _, old := range older {
		old.retire()
	}
	c.ask(s.Asks)
	c.upload(s.Uploads)
	return nil
}

// roundTrip sends a request over this very connection.
func (c *connection) roundTrip(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://node"+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.client.RoundTrip(request)
}

// lines reads line after line. Between two lines it keeps little memory.
type lines struct {
	r    *bufio.Reader
	long []byte
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 512)} }

// next returns the next line, which is valid until the next call.
func (l *lines) next() ([]byte, error) {
	l.long = nil
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case err == nil && l.long == nil:
			return bytes.TrimSpace(part), nil
		case len(l.long)+len(part) > mostLine:
			return nil, fmt.Errorf("%w: a line of its summaries is longer than %d bytes", errProtocol, mostLine)
		case err == nil:
			return bytes.TrimSpace(append(l.long, part...)), nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: the node ended its summaries", errClosed)
		default:
			return nil, fmt.Errorf("%w: %w", errClosed, err)
		}
	}
}
