package storetest

import (
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// sampleBodies are bodies of every kind, filled in and empty.
func sampleBodies(text string) []host.Body {
	grant := newGrant("g"+text, "s"+text)
	grant.Revoked = epoch
	content := mcp.Contents{
		&mcp.TextContent{Text: text},
		&mcp.ImageContent{Data: []byte{0, 0xff, '<', '\n'}, MIMEType: "image/png"},
		&mcp.ResourceLink{Resource: mcp.Resource{URI: "file:///x", Name: text}},
	}
	list := []host.Body{
		&host.UserRecord{Content: content, Server: text, Name: text, Role: "assistant"},
		&host.UserRecord{},
		&host.TurnRecord{Step: 3, Model: text, Offline: true},
		&host.TextRecord{Text: text},
		&host.ReasoningRecord{Reasoning: host.Reasoning{Provider: text, Text: text, Data: object(text)}},
		&host.CallRecord{ID: text, ModelName: text, Server: text, Tool: text, Arguments: object(text)},
		&host.CallRecord{ID: "c", ModelName: "m", Text: "{broken " + text},
		&host.CallRecord{ID: "p", Server: text, Tool: text, ByPage: text, Arguments: object(text)},
		&host.PageRecord{Server: text, Owner: text, URI: text, Digest: text, Size: 5, CSP: text, Why: text},
		&host.UserRecord{Server: text, Name: text, ByPage: text, Content: content},
		&host.TurnEndRecord{Stop: host.StopCalls, Usage: host.Usage{Input: 1 << 40, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.1}},
		&host.ResultRecord{
			Call: text, Outcome: host.OutcomeDone, Content: content, Failed: true, Why: text, Whole: text, Size: 1 << 40,
			Found: []string{text, "x"}, Millis: 5,
		},
		&host.NoticeRecord{Level: "warning", Server: text, Text: text, Untrusted: true},
		&host.LabelRecord{Labels: []policy.Label{policy.LabelUntrusted}, Server: text, Name: text},
		&host.SkillRecord{
			Server: text, Owner: "docs 1", URI: "skill://pdf/SKILL.md", Name: "pdf", Digest: "sha256:1",
			Entry: mcp.RawValue(`{"uri":"skill://pdf/SKILL.md","a":1.0}`), Dynamic: true, Changed: true,
		},
		&host.CompactionRecord{Through: 7, Summary: text},
		&host.UsageRecord{For: text, Usage: host.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.5}},
		&host.RunEndRecord{Outcome: host.OutcomeCancelled, Why: text, Steps: 1, Calls: 2, Failed: 3, Refused: 4},
		&host.QuestionRecord{Question: host.Question{
			ID: "q1", Kind: host.QuestionCall, Server: text, Origin: text, Call: text, Name: text,
			Tool:      &mcp.Tool{Name: text, Description: text, InputSchema: mcp.RawValue(`{"type":"object"}`)},
			Arguments: object(text), Warnings: []string{text}, Why: text,
			Secrets: []host.Secret{{Pointer: "/a", Why: text}},
			Batch:   []host.BatchedCall{{Call: text, Arguments: object(text), Secrets: []host.Secret{{Pointer: "/a", Why: text}}}},
			Changes: []host.Change{{Path: text, Before: text, After: text}},
			Roots:   []mcp.Root{{URI: "file:///home", Name: text}},
			Models:  []string{text},
			Offers:  []host.Offer{{Scope: host.ScopeTool, Text: text, Rule: grant.Rule}},
		}},
		&host.QuestionRecord{Question: host.Question{
			ID: "q2", Kind: host.QuestionSample, Server: "s",
			Sample: &mcp.CreateMessageParams{
				Messages:     []mcp.SamplingMessage{{Role: "user", Content: mcp.Contents{&mcp.TextContent{Text: text}}}},
				SystemPrompt: text, MaxTokens: 10,
			},
		}},
		&host.QuestionRecord{Question: host.Question{
			ID: "q3", Kind: host.QuestionForm, Server: "s", Form: &mcp.ElicitParams{Mode: "url", Message: text, URL: "https://example.com"},
		}},
		&host.AnswerRecord{
			Question: "q1", Withdrawn: text, Grant: grant,
			Answer: host.Answer{
				Action: host.Approve, Face: text, Offer: 1, Minutes: 60, Edited: object(text), Model: text,
				Values: map[string]mcp.RawValue{text: object(text), "n": mcp.RawValue(`1`)}, Roots: []string{text}, Reason: text,
			},
		},
		&host.AnswerRecord{Question: "q2"},
	}
	// JSON that a column of JSON would refuse or change.
	for _, raw := range []string{
		`{}`, `{"b":1,"a":2}`, `{"a":"\u0000\ud83d\ude00\/"}`, `{"a":[1.0,1e400,-0,123456789012345678901234567890]}`,
		`{"a":"<&>` + "\u2028" + `\u2028"}`, `{"":{"a":{"":[null,true,[]]}}}`,
	} {
		list = append(list, &host.StartRecord{Call: "c", Arguments: mcp.RawValue(raw), Edited: true, Why: text})
	}
	return list
}
