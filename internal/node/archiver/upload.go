package archiver

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostAnswer bounds what is read of an answer of the bucket.
const mostAnswer = 4 << 10

// put brings an object into the bucket, unless it is there. It returns the answer of the gateway. What fails for a while is tried
// a few times.
func (a *Archiver) put(ctx context.Context, word api.UploadAsk, object []byte) (answer api.UploadAnswer, err error) {
	for try := 1; ; try++ {
		answer, err = a.putOnce(ctx, word, object)
		var f *failure
		if err == nil || ctx.Err() != nil || try >= a.pace.tries || errors.As(err, &f) && f.forGood {
			return answer, err
		}
		a.cfg.Log.V(1).Info("an object of the archive was not uploaded, trying again", "try", try, "cause", volume.OneLine(err))
		if retry.Pause(ctx, a.pace.try.After(try)) != nil {
			return answer, err
		}
	}
}

func (a *Archiver) putOnce(ctx context.Context, word api.UploadAsk, object []byte) (api.UploadAnswer, error) {
	answer, err := a.ask(ctx, word)
	if err != nil || answer.There {
		return answer, err
	}
	return answer, a.send(ctx, answer, object)
}

// ask asks for a URL.
func (a *Archiver) ask(ctx context.Context, word api.UploadAsk) (api.UploadAnswer, error) {
	limited, cancel := context.WithTimeout(ctx, a.pace.ask)
	defer cancel()
	answer, err := a.cfg.Gateway.Ask(limited, word, a.pace.again)
	switch {
	case err != nil && ctx.Err() != nil:
		return answer, context.Cause(ctx)
	case err != nil:
		return answer, fail(noGateway, "no gateway has given a URL for an object of the archive: %w; see whether one is connected", err)
	case answer.Refused != "":
		err := fmt.Errorf("the gateway gives no URL: %.500s", volume.OneLine(errors.New(answer.Refused)))
		return answer, &failure{error: err, reason: refused, forGood: !answer.Retry}
	}
	return answer, nil
}

// send uploads an object.
func (a *Archiver) send(ctx context.Context, answer api.UploadAnswer, object []byte) error {
	limited, cancel := context.WithTimeout(ctx, a.pace.upload+time.Duration(len(object))*time.Second/a.pace.least)
	defer cancel()
	r, err := a.request(limited, answer, object)
	if err != nil {
		return err
	}
	response, err := a.cfg.Client.Do(r)
	if err != nil {
		return notSent(ctx, err)
	}
	defer response.Body.Close()
	// A body that is read lets the connection be used again.
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	switch code := response.StatusCode; {
	case code/100 == 2 && err != nil:
		return notSent(ctx, err)
	case code/100 == 2:
		return nil
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return fail(forbidden, "the bucket refuses the signed URL with %s%s; see the gateway's credentials, and its clock", response.Status,
			causeIn(body))
	default:
		return fail(bucket, "the bucket answers %s%s", response.Status, causeIn(body))
	}
}

// request returns the request that the answer of a gateway describes.
func (a *Archiver) request(ctx context.Context, answer api.UploadAnswer, object []byte) (*http.Request, error) {
	u, err := url.Parse(answer.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !a.cfg.Insecure) {
		// The URL has the signature.
		return nil, failForGood(refused, errors.New("the gateway's URL is not one of https with a host alone"))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, answer.URL, bytes.NewReader(object))
	if err != nil {
		return nil, failForGood(refused, errors.New("the gateway's URL is none for a request"))
	}
	for key, value := range answer.Header {
		r.Header.Set(key, value)
	}
	return r, nil
}

// notSent is why an object did not reach the bucket. It names no URL: that has the signature.
func notSent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return fail(slow, "the bucket has not taken an object in time: %w", err)
	}
	return fail(bucket, "the bucket is not reached: %w", err)
}

// causeIn returns what the body of an error says, in a few words.
func causeIn(body []byte) string {
	var of struct {
		XMLName xml.Name `xml:"Error"`
		Code    string   `xml:"Code"`
		Message string   `xml:"Message"`
	}
	if xml.Unmarshal(body, &of) != nil || of.Code == "" {
		return ""
	}
	return fmt.Sprintf(" (%.100s: %.200s)", volume.OneLine(errors.New(of.Code)), volume.OneLine(errors.New(of.Message)))
}
