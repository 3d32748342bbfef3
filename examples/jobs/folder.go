package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
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
	defer out.Close()
	before, err := out.Stat()
	if err != nil {
		return err
	}
	if _, err = out.Write(append(raw, '\n')); err == nil {
		err = out.Sync()
	}
	if err != nil { // it must not stand before others
		err = errors.Join(err, out.Truncate(before.Size()))
	}
	return err
}

// end forgets a job.
func (f folder) end(own *job) error {
	err := os.Remove(f.file(own.JobID, ".job"))
	if gone := os.Remove(f.file(own.JobID, ".records")); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// each calls do with every job, and with why its records cannot be read.
func (f folder) each(do func(id string, own *kept, records []server.Record, err error)) error {
	files, err := filepath.Glob(f.file("*", ".job"))
	if err != nil {
		return err
	}
	for _, file := range files {
		own := new(kept)
		raw, err := os.ReadFile(file)
		if err == nil {
			err = strictjson.Unmarshal(raw, own, &strictjson.Options{RefuseUnknown: true})
		}
		if err != nil { // nobody was told of a job that is half-written
			log.Printf("%s: %v", file, err)
			continue
		}
		id := strings.TrimSuffix(filepath.Base(file), ".job")
		records, err := f.records(id)
		do(id, own, records, err)
	}
	return nil
}

// records reads the records of a job. What follows the last whole line was being
// written when the process ended, and is cut off, so that more can be appended.
func (f folder) records(id string) (records []server.Record, err error) {
	file := f.file(id, ".records")
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(raw, '\n') + 1
	if whole < len(raw) {
		if err := os.Truncate(file, int64(whole)); err != nil {
			return nil, err
		}
	}
	for line := range bytes.Lines(raw[:whole]) {
		var r server.Record
		if err := strictjson.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		records = append(records, r)
	}
	return records, nil
}
