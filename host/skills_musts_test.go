package host_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/internal/clausetest"
)

// TestSkillMusts compares what the extension of skills requires of hosts with the tests of
// this folder. Each clause with MUST or MUST NOT that binds a host is a row, in the order
// of its sections. Those that ext/skills fulfils for every host are in its table.
//
// SEP-2640, modelcontextprotocol/ext-skills, specification/stable/skills.mdx at 0682b7b.
func TestSkillMusts(t *testing.T) {
	clausetest.Check(t, filepath.Join("..", "docs", "guide", "skills.md"), skillMusts)
}

func hostSide(text string, tests ...string) clausetest.Clause {
	return clausetest.Clause{Text: text, Side: clausetest.Host, Tests: tests}
}

var skillMusts = []clausetest.Clause{
	hostSide("Capability Negotiation: nothing is asked of a server that has not declared the extension", "TestSkillNotOffered"),
	hostSide("Resource Mapping: a scheme alone makes no skill", "TestSkillReadIsNoLoad"),
	hostSide("Nested Skills: the frontmatter of a nested SKILL.md that is read as a file has no effect", "TestSkillNested"),
	hostSide("Nested Skills: each needs consent of its own", "TestSkillNested"),
	hostSide("Skill URIs: server and URI are both kept wherever a skill is recorded", "TestSkillTwoServers", "TestSkillResume"),
	hostSide("Skill URIs: nothing is keyed on the URI alone", "TestSkillTwoServers"),
	hostSide("Names: they need not be unique", "TestSkillSameName"),
	hostSide("Names: skills of one list with the same name are told apart", "TestSkillSameName"),
	hostSide("Names: a name is looked up for each origin, by the name that the host gave the server", "TestSkillTwoServers", "TestSkillSameName"),
	hostSide("Names: no skill takes the place of another origin's", "TestSkillTwoServers"),
	hostSide("Resources: an entry without an array or \"dynamic\" is not loaded", "TestSkillHostileEntries"),
	hostSide("Limits: 512 files and 16 MiB are loaded", "TestSkillLimits"),
	hostSide("Listing Skills: an empty list is no proof", "TestSkillUnlisted"),
	hostSide("Listing Skills: a skill is loaded by its URI alone", "TestSkillUnlisted"),
	hostSide("Reading Skill Content: a read by another way is no load", "TestSkillReadIsNoLoad"),
	hostSide("Verification on Read: what differs is not used", "TestSkillNeverFits", "TestSkillFileChanges", "TestSkillChangesBeforeLoad"),
	hostSide("The Acting Window and the Held Entry: the entry is held until the text leaves the context", "TestSkillResume", "TestSkillRunsCode"),
	hostSide("The Acting Window and the Held Entry: only files of the held entry are read", "TestSkillPaths"),
	hostSide("Frontmatter Verification: another frontmatter is a failed verification", "TestSkillFrontmatterDiffers"),
	hostSide("Lazy Retrieval: nothing is read ahead", "TestSkillFlow"),
	hostSide("Digests Are Not a Trust Anchor: a digest that fits gives no rights", "TestSkillFlow", "TestSkillRunsCode"),
	hostSide("Directory Reads and the Held Entry: a new file is none of the skill", "TestSkillPaths"),
	hostSide("Untrusted input: the content is untrusted input", "TestSkillFlow"),
	hostSide("Untrusted input: it is of a higher risk than a remote tool", "TestSkillRunsCode", "TestSkillDynamic"),
	hostSide("Origin: the text is marked with its server", "TestSkillFlow"),
	hostSide("Origin: it cannot be taken for a local skill", "TestSkillFlow"),
	hostSide("No implicit local execution: code runs with consent for that skill", "TestSkillRunsCode", "TestSkillRunsCodeChanged"),
	hostSide("No implicit local execution: hooks and scripts of the frontmatter are ignored", "TestSkillFlow"),
	hostSide("No implicit local execution: tools that run code are asked about while the model acts on a skill", "TestSkillRunsCode"),
	hostSide("Origin-scoped resource reads: reads go to the skill's own server", "TestSkillTwoServers", "TestSkillResume", "TestSkillPaths"),
	hostSide("Origin-scoped resource reads: a server has the name that the host gave it", "TestSkillTwoServers"),
	hostSide("Origin-scoped resource reads: there is no way to read from another server", "TestSkillPaths"),
	hostSide("Name collisions: a name is looked up for each origin", "TestSkillTwoServers"),
	hostSide("Name collisions: no skill takes the place of another origin's", "TestSkillTwoServers"),
	hostSide("No implicit permission grants: allowed-tools is ignored", "TestSkillAllowedTools"),
	hostSide("Skills are data: a skill has no higher authority than other text", "TestSkillFlow"),
	hostSide("Nested skill consent: it is asked for each skill", "TestSkillNested"),
	hostSide("Content-bound approval: it is of every uri and digest", "TestSkillGrantEnds"),
	hostSide("Content-bound approval: another set revokes it", "TestSkillGrantEnds", "TestSkillFileChanges", "TestSkillRunsCodeChanged"),
	hostSide("Content-bound approval: none is kept for a dynamic skill", "TestSkillDynamic"),
}
