package server

import (
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/mcp"
)

// need is what an ask takes of a client. Ruling 5: capabilities are checked
// down to sub-capabilities, by the revision of the request.
type need uint8

const (
	needForm need = iota
	needURL
	needSampling
	needSamplingTools
	needSamplingContext
	needRoots
)

// needOf says what a question needs.
func needOf(q *question) need {
	switch p := q.params.(type) {
	case *mcp.ElicitParams:
		if p.Mode == mcp.ModeURL {
			return needURL
		}
		return needForm
	case *mcp.CreateMessageParams:
		switch {
		case len(p.Tools) > 0 || p.ToolChoice != nil:
			return needSamplingTools
		case p.IncludeContext != "" && p.IncludeContext != mcp.IncludeNone:
			return needSamplingContext
		}
		return needSampling
	}
	return needRoots
}

// missing returns what the client of c lacks for n, or nil.
func (n need) missing(c *Call) *NotCapableError {
	nc := n.undeclared(c)
	if f := c.facts; nc != nil && (n == needForm && !f.ElicitForm || n == needURL && !f.ElicitURL || n == needSamplingTools && !f.SamplingTools) {
		nc.version = f.Version
	}
	return nc
}

// undeclared is missing as far as capabilities go.
func (n need) undeclared(c *Call) *NotCapableError {
	caps, f := c.caps, c.facts
	empty := mcp.Settings{}
	var lacks mcp.ClientCapabilities
	switch n {
	case needForm:
		if f.ElicitForm && caps.HasForm() {
			return nil
		}
		lacks.Elicitation = &mcp.ElicitationCapability{Form: empty}
		return &NotCapableError{Required: lacks, what: "forms (elicitation)"}
	case needURL:
		if f.ElicitURL && caps.HasURL() {
			return nil
		}
		lacks.Elicitation = &mcp.ElicitationCapability{URL: empty}
		return &NotCapableError{Required: lacks, what: "opening URLs (elicitation.url)"}
	case needSampling, needSamplingTools, needSamplingContext:
		return n.missingSampling(caps.Sampling, f)
	case needRoots:
		if caps.Roots != nil {
			return nil
		}
	}
	lacks.Roots = &mcp.RootsCapability{}
	return &NotCapableError{Required: lacks, what: "roots"}
}

func (n need) missingSampling(s *mcp.SamplingCapability, f *revision.Facts) *NotCapableError {
	lacks := mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}
	empty := mcp.Settings{}
	switch {
	case s == nil:
		return &NotCapableError{Required: lacks, what: "sampling"}
	case n == needSamplingTools && (!f.SamplingTools || s.Tools == nil):
		lacks.Sampling.Tools = empty
		return &NotCapableError{Required: lacks, what: "tools in sampling (sampling.tools)"}
	case n == needSamplingContext && f.SamplingTools && s.Context == nil:
		lacks.Sampling.Context = empty
		return &NotCapableError{Required: lacks, what: "context in sampling (sampling.context)"}
	}
	return nil
}
