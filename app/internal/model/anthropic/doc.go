// Package anthropic is a client of Anthropic's Messages API, and of servers that speak it,
// as a [host.Model].
//
// The format is that of https://platform.claude.com/docs/en/api/messages and
// https://platform.claude.com/docs/en/build-with-claude/streaming.
package anthropic
