package login_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/login"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	const fails, warns = "fail", "warn"
	tests := []struct {
		name   string
		spoil  func(as *authServer, rs *resourceServer)
		o      login.Options
		want   []string // verdict and step of what is not ok
		advice string   // in the last of them
	}{
		{name: "all well"},
		{
			name: "no S256", want: []string{fails + " PKCE"}, advice: "code_challenge_methods_supported",
			spoil: func(as *authServer, _ *resourceServer) { as.override["code_challenge_methods_supported"] = nil },
		},
		{
			name: "issuer with a slash", want: []string{fails + " authorization server metadata"}, advice: "trailing slash",
			spoil: func(as *authServer, _ *resourceServer) { as.path, as.override["issuer"] = "/tenant", as.URL+"/tenant/" },
		},
		{
			name: "members of other types", want: []string{warns + " resource metadata", warns + " authorization server metadata"}, advice: "operator",
			spoil: func(as *authServer, rs *resourceServer) {
				rs.prm["resource_name"], as.override["jwks_uri"] = 7, "http://plain.example"
			},
		},
		{
			name: "resource mismatch", want: []string{fails + " resource metadata"}, advice: "use the URL that the document names",
			spoil: func(_ *authServer, rs *resourceServer) { rs.resource = "https://other.example/mcp" },
		},
		{
			name: "other origin", want: []string{warns + " resource metadata"}, advice: "MetadataOrigins",
			spoil: func(_ *authServer, rs *resourceServer) {
				rs.header = `Bearer resource_metadata="https://other.example/prm"`
			},
		},
		{
			name: "http endpoint", want: []string{fails + " authorization server metadata"}, advice: "operator",
			spoil: func(as *authServer, _ *resourceServer) { as.override["token_endpoint"] = "http://as.example/token" },
		},
		{
			name: "no registration", want: []string{fails + " registration"}, advice: "Credentials",
			spoil: func(as *authServer, _ *resourceServer) { as.override["registration_endpoint"] = nil },
		},
		{
			name: "no metadata", want: []string{warns + " request", warns + " resource metadata", fails + " authorization server metadata"},
			o: login.Options{}, advice: "later",
			spoil: func(_ *authServer, rs *resourceServer) {
				rs.prmPath = "none"
				rs.handlers["/.well-known/oauth-authorization-server"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
			},
		},
		{
			name: "nothing but the oldest revision's rule", advice: "Options.Credentials",
			want:  []string{warns + " request", warns + " resource metadata", warns + " authorization server metadata", warns + " registration"},
			spoil: func(_ *authServer, rs *resourceServer) { rs.silent, rs.prmPath = true, "none" },
		},
		{
			name: "old and sloppy", want: []string{warns + " request", warns + " resource metadata", warns + " authorization", warns + " token"},
			advice: "sign in whenever",
			spoil: func(as *authServer, rs *resourceServer) {
				rs.silent = true
				rs.prm["scopes_supported"] = []string{"offline_access"}
				as.override["authorization_response_iss_parameter_supported"] = nil
				as.override["grant_types_supported"] = []string{"authorization_code"}
			},
		},
		{
			name: "no token wanted", want: []string{warns + " request"}, advice: "nothing to do",
			spoil: func(_ *authServer, rs *resourceServer) {
				rs.handlers["/mcp"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			if test.spoil != nil {
				test.spoil(as, rs)
			}
			c, b := newClient(t, test.o)
			var got []string
			var last login.Finding
			for f := range c.Diagnose(t.Context(), rs.url()) {
				if f.Verdict != login.OK {
					got = append(got, string(f.Verdict)+" "+string(f.Step))
					last = f
				}
				if f.URL == "" || f.Detail == "" {
					t.Errorf("finding %+v", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if !strings.Contains(last.Advice, test.advice) {
				t.Errorf("advice %q, want %q in it", last.Advice, test.advice)
			}
			if authorize, tokens, registered, _ := as.seen(); len(authorize)+len(tokens)+len(registered)+b.begun != 0 {
				t.Error("something was begun")
			}
		})
	}
}

// Nobody who has seen enough gets more, and a bad URL is a finding too.
func TestDiagnoseStops(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, login.Options{})
	for f := range c.Diagnose(t.Context(), newResource(t, newAuthServer(t, "")).url()) {
		if f.Step != login.StepResource {
			t.Errorf("first finding %+v", f)
		}
		break
	}
	got := slices.Collect(c.Diagnose(t.Context(), "nothing"))
	if len(got) != 1 || got[0].Verdict != login.Fail {
		t.Errorf("findings %+v, want one that fails", got)
	}
}

// A resource that names very many authorization servers does not have all of them asked.
func TestDiagnoseManyServers(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	var issuers []string
	for i := range 1000 {
		issuers = append(issuers, as.URL+"/"+strconv.Itoa(i))
	}
	rs.prm["authorization_servers"] = issuers
	c, _ := newClient(t, login.Options{})
	last := slices.Collect(c.Diagnose(t.Context(), rs.url()))
	if f := last[len(last)-1]; f.Step != login.StepChoice || !strings.Contains(f.Detail, "992 more") {
		t.Errorf("the last finding is %+v, want one about those that were not examined", f)
	}
	if _, _, _, hits := as.seen(); len(hits) > 8*3 {
		t.Errorf("%d requests, want those for 8 servers", len(hits))
	}
}
