package skills_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/internal/clausetest"
)

// TestMusts compares what the specification requires with the tests of this folder. Each
// clause with MUST, MUST NOT or REQUIRED is a row, in the order of its sections. What a
// host alone can do has words of the guide in the place of tests; package host has tests
// for it.
//
// SEP-2640, modelcontextprotocol/ext-skills, specification/stable/skills.mdx at 0682b7b.
func TestMusts(t *testing.T) {
	guide := filepath.Join("..", "..", "docs", "guide", "skills.md")
	all := append(append(formatMusts, methodMusts...), securityMusts...)
	clausetest.Check(t, guide, all)
}

func serverSide(text string, tests ...string) clausetest.Clause {
	return clausetest.Clause{Text: text, Side: clausetest.Server, Tests: tests}
}

func clientSide(text string, tests ...string) clausetest.Clause {
	return clausetest.Clause{Text: text, Side: clausetest.Client, Tests: tests}
}

func hostSide(text, says string) clausetest.Clause {
	return clausetest.Clause{Text: text, Side: clausetest.Host, Heading: "In a host", Says: says}
}

// From Capability Negotiation to Limits.
var formatMusts = []clausetest.Clause{
	serverSide("Capability Negotiation: skills/list and skills/get are served", "TestServerEras", "TestEmpty"),
	serverSide("Capability Negotiation: directoryRead means that directories are served", "TestServerEras", "TestDirectory"),
	clientSide("Capability Negotiation: no directory is asked for without directoryRead", "TestDirectory", "TestDirectoryUndeclared"),
	serverSide("Capability Negotiation: resources is declared too", "TestServerEras", "TestEmpty"),
	serverSide("Skill Format: a skill is one of Agent Skills", "TestRefused", "TestFrontmatterRefused", "TestNames"),
	serverSide("Skill Format: there is a SKILL.md at the root", "TestSources"),
	serverSide("Skill Format: SKILL.md begins with name and description in YAML", "TestRefused", "TestFrontmatterRefused"),
	serverSide("Resource Mapping: the last segment of the path is the name", "TestRefused"),
	clientSide("Resource Mapping: an entry with another last segment is invalid", "TestInvalidEntries"),
	serverSide("Resource Mapping: the name has the form of names", "TestNames"),
	clientSide("Resource Mapping: an entry with a name of another form is invalid", "TestNames", "TestInvalidEntries"),
	clientSide("Resource Mapping: an authority is not looked up in the network", "TestAuthority"),
	clientSide("Resource Mapping: a scheme alone makes no skill", "TestSchemeAlone"),
	hostSide("Resource Mapping: a scheme alone makes no skill, for hosts", "begins with `skill://` does not make a resource a skill"),
	clientSide("Nested Skills: the frontmatter of a nested SKILL.md that is read as a file has no effect", "TestNestedFile"),
	hostSide("Nested Skills: the frontmatter of a nested SKILL.md has no effect, for hosts", "its frontmatter has no effect"),
	hostSide("Skill URIs: server and URI are both kept wherever a skill is recorded", "identified by its server and its URI together"),
	hostSide("Skill URIs: nothing is keyed on the URI alone", "Two servers can have the same URI"),
	hostSide("Skill URIs: the path of a copy has the server in it", "The path of a stored file must contain the server and the URI"),
	serverSide("Frontmatter: that of the entry is that of SKILL.md", "TestEntry", "TestFrontmatterTypes", "TestReservedKeys"),
	serverSide("Frontmatter: the name is the last segment of the entry's uri", "TestRefused"),
	clientSide("Names: a name need not be unique", "TestSameNames"),
	hostSide("Names: skills of one list with the same name are told apart", "with the parts of their paths that differ"),
	hostSide("Names: a name is looked up for each origin", "It looks up a name within one server"),
	hostSide("Names: no skill takes the place of another origin's", "never replaces a skill of another server or a local skill"),
	serverSide("Resources: every entry has them", "TestEntry", "TestDynamic"),
	serverSide("Resources: the array is complete, each file once, SKILL.md among them", "TestEntry"),
	serverSide("Resources: each uri is below the skill's directory", "TestEntry"),
	clientSide("Resources: an entry with a uri elsewhere, or twice, is invalid", "TestInvalidEntries"),
	serverSide("Resources: each file has its size", "TestEntry"),
	clientSide("Resources: an entry without sizes is invalid", "TestInvalidEntries"),
	serverSide("Resources: content that is generated is \"dynamic\"", "TestDynamic"),
	clientSide("Resources: neither an array nor \"dynamic\" is never loaded", "TestInvalidEntries"),
	clientSide("Limits: skills of 512 files and 16 MiB are supported", "TestLargest"),
}

// From Listing Skills to Error Handling.
var methodMusts = []clausetest.Clause{
	serverSide("Listing Skills: skills/list is served", "TestServerEras", "TestPages"),
	serverSide("Listing Skills: resultType is complete", "TestResults"),
	serverSide("Listing Skills: ttlMs and cacheScope are there", "TestResults"),
	clientSide("Listing Skills: a skill that is not listed can be loaded by its URI", "TestLoadUnlisted"),
	hostSide("Listing Skills: an empty list is no proof", "does not prove that a server has no other skills"),
	serverSide("Getting a Skill: skills/get is served", "TestServerEras", "TestEntry"),
	serverSide("Getting a Skill: resultType is complete", "TestResults"),
	clientSide("Getting a Skill: the uri is that of a SKILL.md", "TestGetOther"),
	serverSide("Getting a Skill: what is no skill is -32602", "TestUnknown"),
	serverSide("Getting a Skill: every skill that is served is answered for", "TestEntry", "TestDynamic"),
	serverSide("Getting a Skill: ttlMs and cacheScope are there", "TestResults"),
	hostSide("Reading Skill Content: a read by another way is no load", "Only `Load` loads a skill"),
	clientSide("Verification on Read: digest and size of each file are compared", "TestVerify", "TestVerifyFile"),
	clientSide("Verification on Read: nothing of a file that differs is used", "TestVerify", "TestVerifyFile"),
	clientSide("The Acting Window and the Held Entry: only files of the held entry are read", "TestUnlisted"),
	clientSide("The Acting Window and the Held Entry: any other file is a failed verification", "TestUnlisted", "TestDirectoryAhead"),
	clientSide("Frontmatter Verification: that of SKILL.md is compared field by field", "TestVerify", "TestVerifyDynamic"),
	clientSide("Frontmatter Verification: a difference is a failed verification", "TestVerify", "TestVerifyDynamic"),
	clientSide("Lazy Retrieval: nothing is read ahead", "TestNothingAhead"),
	hostSide("Digests Are Not a Trust Anchor: a digest is no border of trust", "not that the skill is safe"),
	serverSide("Reading Directories: resultType is complete", "TestResults"),
	serverSide("Reading Directories: what is no directory is -32602", "TestUnknown"),
	serverSide("Reading Directories: every directory of the skills can be read", "TestDirectory"),
	clientSide("Directory Reads and the Held Entry: a new child is neither read nor a file of the skill", "TestDirectoryAhead"),
	clientSide("Directory Reads and the Held Entry: a directory adds nothing to the entry", "TestDirectoryAhead"),
	serverSide("Error Handling: an unknown skill is -32602", "TestUnknown"),
	serverSide("Error Handling: an unknown directory is -32602", "TestUnknown"),
	serverSide("Error Handling: a file that is not served is -32602", "TestUnknown"),
	serverSide("Error Handling: an internal error is -32603", "TestDynamic"),
}

// Security Considerations.
var securityMusts = []clausetest.Clause{
	hostSide("Untrusted input: a skill is a stranger's text", "The text of a skill is untrusted content"),
	hostSide("Untrusted input: a skill is of a higher risk than a remote tool", "more dangerous than a call of a remote tool"),
	hostSide("Origin: the text is marked with its server", "The model learns which server it comes from"),
	hostSide("Origin: it cannot be taken for a local skill", "cannot mistake it for a local skill"),
	hostSide("No implicit local execution: code runs with consent for that skill", "Code runs only after the user has consented to it for that skill"),
	hostSide("No implicit local execution: hooks and scripts are ignored or asked about", "hooks and scripts of the frontmatter"),
	hostSide("No implicit local execution: tools that run code are asked about as well", "asks before calls of tools that run code while the model follows the skill"),
	hostSide("Origin-scoped resource reads: reads go to the skill's own server", "it reads from the skill's own server"),
	hostSide("Origin-scoped resource reads: a server has the name that the host gave it", "the one that the host assigned"),
	hostSide("Origin-scoped resource reads: another server needs consent each time", "ask for consent each time, and name both servers"),
	hostSide("Name collisions: a name is looked up for each origin", "It looks up a name within one server"),
	hostSide("Name collisions: no skill takes the place of another origin's", "never replaces a skill of another server or a local skill"),
	hostSide("No implicit permission grants: what widens rights is not honored", "everything else that extends rights"),
	hostSide("No implicit permission grants: allowed-tools needs a grant for that skill", "is ignored unless the user granted it for that skill"),
	hostSide("Skills are data: a skill has no higher authority than other text", "It has no more authority than other text"),
	hostSide("Nested skill consent: it is asked for each skill", "Approval of a skill does not include a skill that is nested in it"),
	hostSide("Content-bound approval: it is of every uri and digest", "A stored approval covers every URI and digest of the entry"),
	hostSide("Content-bound approval: another set revokes it", "If an entry has other URIs or digests, the host asks the user again"),
	hostSide("Content-bound approval: none is kept for a dynamic skill", "stores no approval for a dynamic skill, and a stored one covers nothing"),
	hostSide("Cache: files are checked or out of reach", "compute the digest again on each read"),
	hostSide("Cache: files lie apart from local skills", "outside of the directories where the host looks for local skills"),
	hostSide("Cache: they stay a server's", "remain skills of their server, also after a restart and without the server"),
}
