package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// The bounds of one run of --verify.
const (
	defaultMaxSkills     = 256
	defaultMaxSkillBytes = 64 << 20
)

// A SkillReport says of one skill what --verify found.
type SkillReport struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`
	Conformance []Issue      `json:"conformance"`
	Frontmatter []Issue      `json:"frontmatter"`
	Files       []FileReport `json:"files"`
	// Incomplete is why not all of it was read.
	Incomplete string `json:"incomplete,omitzero"`
	OK         bool   `json:"ok"`
	// Outcome is "verified", "failed", "incomplete" or "unverifiable".
	Outcome string `json:"outcome"`
}

// A FileReport says of one file whether it is what the entry says.
type FileReport struct {
	URI            string `json:"uri"`
	Status         string `json:"status"` // "verified", "mismatch", "unverifiable" or "read-error"
	ExpectedSize   *int64 `json:"expectedSize,omitzero"`
	ActualSize     *int64 `json:"actualSize,omitzero"`
	ExpectedDigest string `json:"expectedDigest,omitzero"`
	ActualDigest   string `json:"actualDigest,omitzero"`
	Reason         string `json:"reason,omitzero"`
}

// Outcomes of skills and states of files.
const (
	skillVerified     = "verified"
	skillFailed       = "failed"
	skillIncomplete   = "incomplete"
	skillUnverifiable = "unverifiable"

	fileMismatch  = "mismatch"
	fileReadError = "read-error"
)

// verify reads every file of skills, and emits a report of each.
func (s *Session) verify(ctx context.Context, list []mcp.RawValue, a *Args) (*Outcome, error) {
	entries := make([]*skillEntry, 0, len(list))
	for _, raw := range list {
		entries = append(entries, readEntry(raw))
	}
	v := &verifier{s: s, skills: a.MaxSkills, bytes: a.MaxSkillBytes}
	if v.skills == 0 {
		v.skills = defaultMaxSkills
	}
	if v.bytes == 0 {
		v.bytes = defaultMaxSkillBytes
	}
	same := sameNames(entries)
	counts := make(map[string]int)
	files, mismatched := 0, 0
	for _, e := range entries {
		r, err := v.report(ctx, e)
		if err != nil {
			return nil, err
		}
		if issue, ok := same[sameURI(e.uri)]; ok {
			r.Conformance = append(r.Conformance, issue)
		}
		r.judge(e)
		counts[r.Outcome]++
		files += len(r.Files)
		for i := range r.Files {
			if r.Files[i].Status == fileMismatch {
				mismatched++
			}
		}
		line, err := strictjson.Marshal(r)
		if err != nil {
			return nil, Internal(err)
		}
		if err := a.Emit(line); err != nil {
			return nil, err
		}
	}
	o := &Outcome{Summary: fmt.Sprintf("%d skills and %d files: %d verified, %d failed (%d files differ), %d not read completely, %d without digests",
		len(entries), files, counts[skillVerified], counts[skillFailed], mismatched, counts[skillIncomplete], counts[skillUnverifiable])}
	switch {
	case counts[skillFailed] > 0:
		o.Failure = &Error{Exit: ExitSkillFailed, Code: "skills_nonconformant", Message: o.Summary}
	case counts[skillIncomplete] > 0:
		o.Failure = &Error{Exit: ExitSkillIncomplete, Code: "skills_incomplete", Message: o.Summary}
	case counts[skillUnverifiable] > 0 && a.RequireDigests:
		o.Failure = &Error{Exit: ExitSkillUnverifiable, Code: "skills_unverifiable", Message: o.Summary}
	}
	return o, nil
}

// A verifier reads files within the bounds of one run.
type verifier struct {
	s      *Session
	skills int   // that may still be read
	bytes  int64 // that may still be read
}

// report reads the files of a skill.
func (v *verifier) report(ctx context.Context, e *skillEntry) (*SkillReport, error) {
	r := &SkillReport{URI: e.uri, Name: e.shownName(), Conformance: e.check(), Frontmatter: []Issue{}, Files: []FileReport{}}
	if e.broken != "" {
		return r, nil
	}
	if v.skills <= 0 || v.bytes <= 0 {
		r.Incomplete = "not read: the run reached --skill-catalog-max-skills or --skill-catalog-max-bytes; verify this skill separately with skills/get"
		return r, nil
	}
	v.skills--
	w := &skillWalk{v: v, e: e, r: r, own: sameURI(e.uri)}
	err := w.files(ctx)
	if err == nil && !w.met {
		err = w.self(ctx)
	}
	if err != nil {
		return nil, err
	}
	v.bytes -= w.read
	if w.document != nil {
		r.Frontmatter = e.matches(w.document)
	}
	return r, nil
}

// judge says what comes of it all.
func (r *SkillReport) judge(e *skillEntry) {
	failed := false
	for _, list := range [][]Issue{r.Conformance, r.Frontmatter} {
		for i := range list {
			failed = failed || list[i].Severity == severityError
		}
	}
	for i := range r.Files {
		failed = failed || r.Files[i].Status == fileMismatch || r.Files[i].Status == fileReadError
	}
	r.OK = !failed
	switch {
	case failed:
		r.Outcome = skillFailed
	case r.Incomplete != "":
		r.Outcome = skillIncomplete
	case e.dynamic:
		r.Outcome = skillUnverifiable
	default:
		r.Outcome = skillVerified
	}
}

// A skillWalk goes through the files of one skill.
type skillWalk struct {
	v        *verifier
	e        *skillEntry
	r        *SkillReport
	own      string // the URI of its SKILL.md
	met      bool   // that is among the files, and was asked for
	document []byte // its bytes
	read     int64
}

// files reads what the entry lists, as far as hosts support.
func (w *skillWalk) files(ctx context.Context) error {
	list := w.e.files
	var declared int64
	for i := range list {
		n, _ := list[i].size()
		if declared += n; i >= maxSkillFiles || declared > maxSkillBytes {
			w.r.Incomplete = fmt.Sprintf("only %d of its %d files were read: hosts support %d files and %d bytes", i, len(list), maxSkillFiles, int64(maxSkillBytes))
			list = list[:i]
			break
		}
	}
	for i := range list {
		file, data, err := w.file(ctx, &list[i])
		if err != nil {
			return err
		}
		if sameURI(list[i].URI) == w.own {
			w.met = true
			if data != nil {
				w.document = data
			}
		}
		w.r.Files = append(w.r.Files, *file)
		if w.read > maxSkillBytes {
			if i < len(list)-1 {
				w.r.Incomplete = fmt.Sprintf("only %d of its %d files were read: the server sent more than %d bytes", i+1, len(w.e.files), int64(maxSkillBytes))
			}
			break
		}
	}
	return nil
}

// self reads the SKILL.md of an entry that does not list it, or not among what was read.
func (w *skillWalk) self(ctx context.Context) error {
	for i := range w.e.files {
		if sameURI(w.e.files[i].URI) == w.own {
			file, data, err := w.file(ctx, &w.e.files[i])
			if err == nil {
				w.document = data
				w.r.Files = append(w.r.Files, *file)
			}
			return err
		}
	}
	data, err := w.bytes(ctx, w.e.uri)
	if err != nil {
		if isFatal(ctx, err) {
			return err
		}
		w.r.Files = append(w.r.Files, FileReport{URI: w.e.uri, Status: fileReadError, Reason: err.Error()})
		return nil
	}
	w.document = data
	return nil
}

// file reads a file and compares it with its entry.
func (w *skillWalk) file(ctx context.Context, res *skillResource) (*FileReport, []byte, error) {
	report := &FileReport{URI: res.URI}
	data, err := w.bytes(ctx, res.URI)
	if err != nil {
		if isFatal(ctx, err) {
			return nil, nil, err
		}
		report.Status, report.Reason = fileReadError, err.Error()
		return report, nil, nil
	}
	actual := int64(len(data))
	if n, ok := res.size(); ok {
		report.ExpectedSize, report.ActualSize = &n, &actual
	}
	if res.Digest != nil {
		report.ExpectedDigest = *res.Digest
	}
	switch {
	case report.ExpectedSize != nil && *report.ExpectedSize != actual:
		report.Status, report.Reason = fileMismatch, fmt.Sprintf("the entry says %d bytes, the server sent %d", *report.ExpectedSize, actual)
		return report, data, nil
	case res.Digest == nil:
		report.ExpectedSize, report.ActualSize = nil, nil
		report.Status, report.Reason = skillUnverifiable, "the entry has no digest"
		return report, data, nil
	case !digestForm.MatchString(*res.Digest):
		report.ExpectedSize, report.ActualSize = nil, nil
		report.Status, report.Reason = skillUnverifiable, `the digest is not "sha256:" and 64 hexadecimal digits`
		return report, data, nil
	}
	sum := sha256.Sum256(data)
	report.ActualDigest = "sha256:" + hex.EncodeToString(sum[:])
	report.Status = skillVerified
	if report.ActualDigest != report.ExpectedDigest {
		report.Status = fileMismatch
	}
	return report, data, nil
}

// isFatal reports whether an error ends the run: it is not about the file.
func isFatal(ctx context.Context, err error) bool {
	e := Classify(err)
	return ctx.Err() != nil || e.Exit == ExitAuth || e.Exit == ExitUnreachable && e.Code == codeUnreachable
}

// bytes reads the bytes of a file.
func (w *skillWalk) bytes(ctx context.Context, uri string) ([]byte, error) {
	raw, err := w.v.s.ask(ctx, mcp.MethodResourcesRead, map[string]string{"uri": uri}, nil)
	if err != nil {
		return nil, err
	}
	w.read += int64(len(raw))
	var answer struct {
		Contents []struct {
			URI  string  `json:"uri"`
			Text *string `json:"text"`
			Blob *string `json:"blob"`
		} `json:"contents"`
	}
	if err := strictjson.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the result cannot be read: %w", err)
	}
	for _, c := range answer.Contents {
		switch {
		case sameURI(c.URI) != sameURI(uri):
		case c.Text != nil:
			return []byte(*c.Text), nil
		case c.Blob != nil:
			return base64.StdEncoding.DecodeString(*c.Blob)
		default:
			return nil, errors.New("its contents have neither text nor bytes")
		}
	}
	return nil, errors.New("the result has no contents with that URI")
}
