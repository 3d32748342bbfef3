package login

import (
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/parley-mcp/parley/oauth"
)

// A challenge is what a 401 or 403 tells, or only the URL of a resource that was not asked yet.
type challenge struct {
	// url is what was requested, without user and fragment. Its query may belong to the identifier
	// of the resource (RFC 9728, section 1.2).
	url *url.URL
	// version is the MCP-Protocol-Version of the request.
	version string
	status  int
	// metadata is the resource_metadata, and code the error; either may be empty.
	metadata, code string
	// known is where the metadata lay before, of this resource or one above it; it may be empty.
	known string
	// scopes are nil if there are none.
	scopes []string
	// foreign says that other kinds of credentials are asked for.
	foreign bool
}

func newChallenge(requested *url.URL, version string) *challenge {
	u := *requested
	u.ForceQuery, u.Fragment, u.RawFragment, u.User = false, "", "", nil
	return &challenge{url: &u, version: version}
}

// readChallenge reads a response; nil if it is neither 401 nor 403. Some servers send no
// WWW-Authenticate, which is taken for a plain one.
func readChallenge(req *http.Request, resp *http.Response) *challenge {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil
	}
	ch := newChallenge(req.URL, req.Header.Get("MCP-Protocol-Version"))
	ch.status = resp.StatusCode
	all := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	first, ok := oauth.FindChallenge(all, "Bearer", "DPoP")
	if !ok {
		ch.foreign = len(all) > 0
		return ch
	}
	params := first.Params
	if bound, ok := oauth.FindChallenge(all, "DPoP"); ok && params["error"] == "" {
		params = maps.Clone(bound.Params) // what only the second one says counts too
		maps.Copy(params, first.Params)
	}
	ch.metadata, ch.code, ch.scopes = params["resource_metadata"], params["error"], parseServerScopes(params["scope"])
	return ch
}

// maxScopeText bounds a list of scopes from a server, in bytes: it is shown to a person.
const maxScopeText = 8 << 10

// parseServerScopes reads a list of scopes; nil if there are none, or it is none.
func parseServerScopes(list string) []string {
	if len(list) > maxScopeText {
		return nil
	}
	scopes, err := oauth.ParseScope(list)
	if err != nil || len(scopes) == 0 {
		return nil
	}
	return scopes
}

// maxDrain is how much of a refusal, if its length is known, is read to keep the connection.
const maxDrain = 64 << 10

func discard(resp *http.Response) {
	if resp.ContentLength >= 0 && resp.ContentLength <= maxDrain {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	}
	_ = resp.Body.Close()
}
