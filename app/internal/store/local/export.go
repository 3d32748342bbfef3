package local

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/strictjson"
)

// exportVersion is the version of the format of exports.
const exportVersion = 1

// exportHead is the first line of an export.
type exportHead struct {
	Version int              `json:"version"`
	Session host.SessionInfo `json:"session"`
	// Ancestors are the sessions that it is a fork of, the first one first.
	Ancestors []host.SessionInfo `json:"ancestors"`
}

// exportRecord is a further line of an export.
type exportRecord struct {
	N int64 `json:"n"`
	// Session is the session that the record is in: this one or an ancestor.
	Session string              `json:"session"`
	Time    time.Time           `json:"time"`
	Kind    string              `json:"kind"`
	Body    strictjson.RawValue `json:"body"`
}

// maxAncestors bounds the forks of forks.
const maxAncestors = 1000

// Export writes a session as lines of JSON. The first has the version of the format, 1, the
// session and those that it is a fork of. Each further line is a record, those of ancestors
// first, so that the numbers go from 1 without gaps; members stand in one order. Blobs, to
// which results refer by name, are not in it. What is written is of one moment.
func (d *DB) Export(ctx context.Context, session string, w io.Writer) error {
	out := bufio.NewWriter(w)
	return d.view(ctx, fmt.Sprintf("export session %q", session), func(tx *sql.Tx) error {
		chain, err := lineage(ctx, tx, session)
		if err != nil {
			return err
		}
		head := exportHead{Version: exportVersion, Session: chain[len(chain)-1], Ancestors: chain[:len(chain)-1]}
		if err := writeLine(out, head); err != nil {
			return err
		}
		for i, s := range chain {
			to := int64(-1)
			for _, later := range chain[i+1:] {
				if to < 0 || later.At < to {
					to = later.At
				}
			}
			if err := eachRecord(ctx, tx, s.ID, s.At+1, to, func(r row) error {
				if err := writeLine(out, exportRecord{r.n, s.ID, moment(r.time), r.kind, r.body}); err != nil {
					return ownErrorf("record %d of session %q: %w", r.n, s.ID, err)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return &ownError{err}
		}
		return nil
	})
}

// lineage is a session after those that it is a fork of, the first one first.
func lineage(ctx context.Context, tx *sql.Tx, id string) ([]host.SessionInfo, error) {
	var chain []host.SessionInfo
	for {
		s, err := readSession(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		s.Used = time.Time{} // the records have times
		chain = append(chain, s)
		if s.Parent == "" {
			slices.Reverse(chain)
			return chain, nil
		}
		if len(chain) > maxAncestors {
			return nil, ownErrorf("it is a fork of more than %d others, or of itself: the file was changed", maxAncestors)
		}
		id = s.Parent
	}
}

func writeLine(out *bufio.Writer, v any) error {
	line, err := strictjson.Marshal(v)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	if err != nil {
		return &ownError{err}
	}
	return nil
}
