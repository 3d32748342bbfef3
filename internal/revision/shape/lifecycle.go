package shape

import "github.com/parley-mcp/parley/mcp"

func initializeParams(s *Shape, d *draft[mcp.InitializeParams]) error {
	info := draft[mcp.Implementation]{v: &d.v.ClientInfo}
	if implementation(s, &info); info.copied {
		d.edit().ClientInfo = *info.v
	}
	caps := draft[mcp.ClientCapabilities]{v: &d.v.Capabilities}
	if clientCapabilities(s, &caps); caps.copied {
		d.edit().Capabilities = *caps.v
	}
	return nil
}

func initializeResult(s *Shape, d *draft[mcp.InitializeResult]) error {
	info := draft[mcp.Implementation]{v: &d.v.ServerInfo}
	if implementation(s, &info); info.copied {
		d.edit().ServerInfo = *info.v
	}
	if !s.facts.CompletionCapability && d.v.Capabilities.Completions != nil {
		d.edit().Capabilities.Completions = nil
	}
	return nil
}

func implementation(s *Shape, d *draft[mcp.Implementation]) {
	zero(d, !s.facts.Titles, func(i *mcp.Implementation) *string { return &i.Title })
	zero(d, !s.facts.Icons, func(i *mcp.Implementation) *string { return &i.Description })
	zero(d, !s.facts.Icons, func(i *mcp.Implementation) *string { return &i.WebsiteURL })
	dropIcons(d, !s.facts.Icons, func(i *mcp.Implementation) *[]mcp.Icon { return &i.Icons })
}

// clientCapabilities leaves out what the revision does not know. Extensions,
// experimental and unknown members stay: the set is open in every revision, and
// extensions are negotiated in the handshake too.
func clientCapabilities(s *Shape, d *draft[mcp.ClientCapabilities]) {
	if d.v.Elicitation != nil && !s.facts.ElicitModes {
		form := d.v.HasForm()
		if !s.facts.ElicitForm || !form {
			d.edit().Elicitation = nil
		} else if d.v.Elicitation.Form != nil || d.v.Elicitation.URL != nil {
			d.edit().Elicitation = &mcp.ElicitationCapability{}
		}
	}
	if c := d.v.Sampling; c != nil && !s.facts.SamplingTools && (c.Context != nil || c.Tools != nil) {
		d.edit().Sampling = &mcp.SamplingCapability{}
	}
}

func completeParams(s *Shape, d *draft[mcp.CompleteParams]) error {
	zero(d, !s.facts.CompletionContext, func(p *mcp.CompleteParams) **mcp.CompletionContext { return &p.Context })
	zero(d, !s.facts.Titles, func(p *mcp.CompleteParams) *string { return &p.Ref.Title })
	return nil
}

func progressParams(s *Shape, d *draft[mcp.ProgressParams]) error {
	zero(d, !s.facts.ProgressMessage, func(p *mcp.ProgressParams) *string { return &p.Message })
	return nil
}
