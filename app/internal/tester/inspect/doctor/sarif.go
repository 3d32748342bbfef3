package doctor

import (
	"bytes"
	"encoding/json"
	"net/url"
)

// The form of SARIF 2.1.0, as far as it is used: one run, a rule for each code, and a result for
// each finding, whose place is a logical one: a server has no lines. The artifact stands for the
// server, since some readers show no result without one.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string       `json:"id"`
		ShortDescription     sarifMessage `json:"shortDescription"`
		Help                 sarifMessage `json:"help"`
		DefaultConfiguration sarifLevel   `json:"defaultConfiguration"`
	}
	sarifLevel struct {
		Level Severity `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     Severity        `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical  `json:"physicalLocation"`
		LogicalLocations []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// SARIF is a report as SARIF 2.1.0; version is that of this program.
func SARIF(r *Report, version string) ([]byte, error) {
	run := sarifRun{
		Tool:    sarifTool{sarifDriver{Name: "parley doctor", Version: version, InformationURI: "https://github.com/parley-mcp/parley"}},
		Results: []sarifResult{},
	}
	index := make(map[string]int, len(codes))
	for i, c := range codes {
		index[c.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			c.ID, sarifMessage{c.Title}, sarifMessage{c.Fix + " (" + c.Clause + ")"}, sarifLevel{c.Severity},
		})
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		run.Results = append(run.Results, sarifResult{
			f.Code, index[f.Code], f.Severity,
			sarifMessage{f.Reason + ". Fix: " + f.Fix},
			[]sarifLocation{{sarifPhysical{sarifArtifact{"mcp/" + url.PathEscape(r.Server)}}, []sarifLogical{{f.Where}}}},
		})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	err := e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
	return b.Bytes(), err
}
