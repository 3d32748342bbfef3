package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// A folder keeps jobs: a file ID.job for each, and ID.records with a line for each
// record. Its files say who a caller is, so nobody else may write them.
type folder string

// kept is the content of a file ID.job.
type kept struct {
	Owner string       `json:"owner"`
	Call  mcp.RawValue `json:"call"`
}

func (f folder) file(id, suffix string) string { return filepath.Join(string(f), id+suffix) }

// create keeps a job before its client is told of it.
func (f folder) create(own *job, saved []byte) error {
	raw, err := strictjson.Marshal(kept{own.owner, saved})
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(string(f), 0o700), os.WriteFile(f.file(own.JobID, ".job"), raw, 0o600))
}

// record appends a record; the handler goes on when it has returned.
func (f folder) record(own *job, r server.Record) error {
	raw, err := strictjson.Marshal(r)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(f.file(own.JobID, ".records"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(append(raw, '\n'))
	return errors.Join(err, out.Sync(), out.Close())
}

// end forgets a job.
func (f folder) end(own *job) error {
	err := os.Remove(f.file(own.JobID, ".job"))
	if gone := os.Remove(f.file(own.JobID, ".records")); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// each calls do with every job.
func (f folder) each(do func(id, owner string, saved []byte, records []server.Record) error) error {
	files, err := filepath.Glob(f.file("*", ".job"))
	if err != nil {
		return err
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".job")
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var own kept
		if err := strictjson.Unmarshal(raw, &own, &strictjson.Options{RefuseUnknown: true}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		records, err := f.records(id)
		if err != nil {
			return err
		}
		if err := do(id, own.Owner, own.Call, records); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (f folder) records(id string) (records []server.Record, err error) {
	raw, err := os.ReadFile(f.file(id, ".records"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(raw) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the process ended while it was written
		}
		var r server.Record
		if err := strictjson.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}
