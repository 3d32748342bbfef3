// Package skills serves and loads agent skills: folders with a SKILL.md and
// supporting files, whose every byte has a digest in the entry of the skill.
//
// A server offers the skills below a folder with
//
//	catalog, err := skills.Enable(s, skills.Dir("./skills"), nil)
//
// and every file is a resource with the URI skill://PATH. A client is given
// [Extension], lists entries with [List] or asks for one with [Get], and loads what it
// holds an entry of with [Load] and [Read]: what differs from the entry is a
// [VerifyError] and is never returned.
//
// A digest comes from the server that sends the bytes: it proves that they belong
// together, not that either is to be trusted. What a skill says is text of a stranger.
// Which server it came from, whether the person approved it, and that code runs only
// with consent is for the host to know; so is that a skill is named by its server and
// its URI together, since names and URIs of two servers may be the same.
//
// The extension is io.modelcontextprotocol/skills (SEP-2640), for the revisions
// without a handshake.
package skills
