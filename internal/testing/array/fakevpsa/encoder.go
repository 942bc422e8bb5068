package fakevpsa

import (
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// Where the encoder hands on what it has.
const encoded = 32 << 10

// encoder writes an answer piece by piece, so that a long list is never in memory as a whole.
type encoder struct {
	w   io.Writer
	err error
	buf []byte
	// strings: numbers are written as strings.
	strings bool
	// open: a value was written before, at this level.
	open bool
}

func (e *encoder) flush() {
	if e.err == nil && len(e.buf) > 0 {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

func (e *encoder) comma() {
	if e.open {
		e.buf = append(e.buf, ',')
	}
	e.open = true
}

func (e *encoder) key(key string) {
	e.comma()
	e.quote(key)
	e.buf = append(e.buf, ':')
}

func (e *encoder) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // Any string can be encoded.
			}
			e.buf = append(e.buf, quoted...)
			return
		}
	}
	e.buf = append(e.buf, '"')
	e.buf = append(e.buf, s...)
	e.buf = append(e.buf, '"')
}

func (e *encoder) begin(bracket byte) {
	e.buf = append(e.buf, bracket)
	e.open = false
}

func (e *encoder) end(bracket byte) {
	e.buf = append(e.buf, bracket)
	e.open = true
	if len(e.buf) >= encoded {
		e.flush()
	}
}

func (e *encoder) object(key string, write func()) {
	e.key(key)
	e.begin('{')
	write()
	e.end('}')
}

func (e *encoder) text(key, value string) {
	e.key(key)
	e.quote(value)
}

// textOrNull writes null for what is empty.
func (e *encoder) textOrNull(key, value string) {
	if value == "" {
		e.null(key)
		return
	}
	e.text(key, value)
}

func (e *encoder) null(key string) {
	e.key(key)
	e.buf = append(e.buf, "null"...)
}

func (e *encoder) yes(key string, yes bool) {
	if yes {
		e.text(key, "YES")
		return
	}
	e.text(key, "NO")
}

func (e *encoder) number(key string, n int64) {
	e.key(key)
	e.numeral(strconv.AppendInt(nil, n, 10))
}

// gib writes MiB as GB with up to three digits behind the point.
func (e *encoder) gib(key string, mib int64) {
	e.key(key)
	f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(mib)/1024, 'f', 3, 64), 64)
	e.numeral(strconv.AppendFloat(nil, f, 'f', -1, 64))
}

func (e *encoder) numeral(n []byte) {
	if e.strings {
		e.buf = append(e.buf, '"')
	}
	e.buf = append(e.buf, n...)
	if e.strings {
		e.buf = append(e.buf, '"')
	}
}

// oldTime and time write both spellings of times.
func (e *encoder) oldTime(key string, unix int64) {
	e.text(key, time.Unix(unix, 0).UTC().Format("2006-01-02 15:04:05 UTC"))
}

func (e *encoder) time(key string, unix int64) {
	e.text(key, time.Unix(unix, 0).UTC().Format("2006-01-02T15:04:05+00:00"))
}

// answer writes what stands in a response besides its status; nil writes nothing.
type answer func(e *encoder)

// one answers with an object.
func one(key string, write func(*encoder)) answer {
	return func(e *encoder) { e.object(key, func() { write(e) }) }
}

// name answers with the ID of a new object.
func name(key, id string) answer {
	return func(e *encoder) { e.text(key, id) }
}

// list answers with a page of objects, and how many there are.
func list[T any](key string, c *call, objects []T, write func(*encoder, T)) answer {
	count := len(objects)
	objects = objects[min(int(c.start), count):]
	if c.limit > 0 {
		objects = objects[:min(int(c.limit), len(objects))]
	}
	return func(e *encoder) {
		e.key(key)
		e.begin('[')
		for _, o := range objects {
			e.comma()
			e.begin('{')
			write(e, o)
			e.end('}')
		}
		e.end(']')
		e.number("count", int64(count))
	}
}
