package archtest

// modulePath is the import path that all packages of the repository share.
const modulePath = "github.com/parley-mcp/parley"

// A row says what a set of packages may import of the repository's own
// packages.
//
// Packages are named by their folder, seen from the root of the repository;
// "." is the root package itself. "x/..." stands for x and all beneath it. In
// may, "public" stands for every package of the library that is not internal,
// and a leading "!" takes packages away again.
type row struct{ packages, may string }

// rows is the import table. A package takes the first row that names it, so
// that exact names stand above patterns. A package without a row is a breach:
// a new package is a design decision.
var rows = []row{
	{". internal/archtest internal/flows", ""},
	{"internal/revision internal/wire internal/httptoken internal/eventstream internal/pausetimer internal/tracecontext uritemplate principal netguard", ""},
	{"mcp jsonrpc strictjson", "internal/wire"},
	{"internal/schematext", "internal/wire"},
	{"schema", "internal/wire internal/httptoken"},
	{"schema/provider", "mcp schema internal/schematext internal/wire"},
	{"oauth", "netguard internal/wire"},
	{"internal/revision/shape", "mcp internal/revision internal/wire"},
	{"internal/clausetest internal/clocktest internal/linetest internal/logtest internal/racetest internal/webtest", ""},
	{"internal/linktest", "internal/wire jsonrpc transport"},
	{"transport transport/frame", "jsonrpc principal transport internal/pausetimer"},
	{"internal/tap", "transport"},
	{"transport/web", "transport jsonrpc principal internal/tap internal/httptoken internal/eventstream"},
	{
		"transport/stdio transport/streamable transport/sse transport/websocket transport/mem",
		"transport transport/frame transport/web jsonrpc principal internal/tap internal/revision internal/wire internal/httptoken internal/eventstream",
	},
	{
		"server",
		"mcp jsonrpc schema uritemplate principal transport internal/pausetimer internal/revision internal/revision/shape internal/tracecontext internal/wire",
	},
	{
		"client",
		"mcp jsonrpc schema principal transport internal/pausetimer internal/revision internal/revision/shape internal/tracecontext internal/wire",
	},
	{"oauth/internal/jwt", "oauth internal/wire"},
	{"oauth/login/browser", "oauth"},
	{"oauth/login", "oauth oauth/login/browser oauth/internal/jwt principal internal/wire internal/pausetimer"},
	{"oauth/guard oauth/issuer", "oauth oauth/internal/jwt principal internal/wire internal/pausetimer"},
	{"oauth/issuer/storetest", "oauth oauth/issuer"},
	{"ext/tasks/storetest", "ext/tasks mcp jsonrpc server"},
	{"host/storetest", "host mcp policy"},
	{"ext/tasks ext/skills ext/apps", "mcp jsonrpc strictjson schema principal server client"},
	{
		"proxy",
		"mcp jsonrpc schema schema/provider uritemplate principal transport server client internal/wire",
	},
	{"mcptest", "public !host/... !oauth/..."},
	{"policy", "mcp principal internal/wire"},
	{
		"host",
		"mcp client schema schema/provider policy principal transport internal/pausetimer internal/schematext internal/wire",
	},
	{"contrib/prometheus", "public contrib/prometheus/metrics"},
	{"contrib/...", "public"},
	{"app/cmd/parley app/cmd/parley-docs", "app/internal/cli app/internal/kit"},
	{"app/internal/cli", "public contrib/... app/internal/..."},
	// Groups of commands: none imports another.
	{"app/internal/chat", "public app/internal/connect app/internal/kit app/internal/ui app/internal/config app/internal/discover app/internal/losses app/internal/safefile app/internal/model/... app/internal/store/local app/internal/chat/tui/..."},
	{"app/internal/use", "public app/internal/connect app/internal/kit app/internal/losses app/internal/model app/internal/store/..."},
	{"app/internal/tester", "public contrib/... app/internal/connect app/internal/kit app/internal/config app/internal/ui app/internal/losses app/internal/mask app/internal/bridge app/internal/front app/internal/model app/internal/store/local app/internal/tester/..."},
	{"app/internal/serve", "public contrib/... app/internal/connect app/internal/kit app/internal/bridge app/internal/front app/internal/store/tasks app/internal/serve/..."},
	{
		"app/internal/authserver",
		"public contrib/... app/internal/kit app/internal/front app/internal/audit app/internal/telemetry app/internal/store/... app/internal/authserver/...",
	},
	// What groups share.
	{"app/internal/connect", "public app/internal/kit app/internal/config app/internal/ui app/internal/mask app/internal/model app/internal/model/provider app/internal/store/local app/internal/store/secrets"},
	{"app/internal/bridge", "public app/internal/kit app/internal/front"},
	{"app/internal/front", "public contrib/... app/internal/kit app/internal/telemetry"},
	{"app/internal/kit", "public app/internal/config app/internal/discover app/internal/ui app/internal/mask"},
	{"app/internal/model/anthropic app/internal/model/openai app/internal/model/gemini", "public app/internal/model/provider"},
	{"app/internal/tester/inspect/...", "public app/internal/tester/inspect/... app/internal/ui app/internal/losses app/internal/mask"},
	{"app/internal/ui", "public app/internal/ui/uitest"},
	{"app/internal/chat/tui/panel", "public app/internal/ui app/internal/ui/uitest app/internal/chat/tui/style"},
	{"app/internal/chat/tui", "public app/internal/ui app/internal/chat/tui/style app/internal/chat/tui/panel"},
	{"app/internal/store/records", "public app/internal/printable app/internal/store/database app/internal/store/seal"},
	{"app/internal/store/tasks app/internal/store/local", "public app/internal/store/database"},
	{"app/internal/authserver/admin", "public app/internal/audit app/internal/printable app/internal/store/records app/internal/authserver/userauth"},
	{"app/internal/authserver/userauth", "public app/internal/printable"},
	{"app/internal/audit", "public app/internal/safefile"},
	{"app/internal/store/secrets", "public app/internal/safefile"},
	{"app/internal/store/seal", ""},
	{"app/internal/serve/servers/memory", "public app/internal/serve/servers app/internal/safefile"},
	{"app/internal/discover", "public app/internal/config"},
	{"app/internal/serve/servers/fetch", "public app/internal/serve/servers app/internal/serve/servers/fetch/..."},
	{"app/internal/serve/servers/filesystem", "public app/internal/serve/servers app/internal/serve/servers/filesystem/... app/internal/serve/servers/linediff"},
	{"app/internal/serve/servers/git", "public app/internal/serve/servers app/internal/serve/servers/git/..."},
	{"app/internal/serve/servers/git/...", "public app/internal/serve/servers/git/... app/internal/serve/servers/linediff"},
	{"app/internal/serve/servers/linediff", ""},
	{"app/internal/serve/servers/...", "public app/internal/serve/servers"},
	{"app/interop/...", "public app/interop/..."},
	{"app/internal/...", "public"},
	{"conformance/...", "public conformance/..."},
	{"bench/...", "public bench/..."},
	{"examples/...", "public contrib/..."},
	{"release lint", ""},
}

// A reservation keeps a package that is not ours for a few importers. Tests are
// exempt.
type reservation struct {
	// path is the package; what lies beneath it is kept as well.
	path string
	// importers are the packages that may import it, as in row.packages.
	importers string
	// why is the reason that the error gives for an import elsewhere.
	why string
}

var reservations = []reservation{
	{
		"encoding/json", "internal/wire app/... conformance/... bench/... app/interop/... examples/... release",
		"the library has one JSON codec, and it is strict",
	},
	{
		"github.com/go-json-experiment/json", "internal/wire",
		"the library has one JSON codec, and it is strict",
	},
	{
		"github.com/santhosh-tekuri/jsonschema", "schema",
		"foreign schemas are bounded and checked in one place",
	},
	{
		"github.com/yosida95/uritemplate", "uritemplate",
		"templates are matched and expanded in one place",
	},
	{
		"github.com/coder/websocket", "transport/websocket",
		"what is not that transport should not need it",
	},
	{
		"github.com/go-jose/go-jose/v4", "oauth/internal/jwt app/interop/...",
		"tokens are signed and verified in one place",
	},
	{
		"go.yaml.in/yaml/v3", "ext/skills app/internal/config",
		"what YAML means is decided where skills, and where configuration is read",
	},
	{
		"github.com/go-git", "app/internal/serve/servers/git/...",
		"repositories, whose contents are of strangers, are read in one place",
	},
	{
		"github.com/tailscale/hujson", "app/internal/config",
		"JSON with comments is for configuration alone",
	},
	{
		"github.com/fsnotify/fsnotify", "app/internal/serve/servers/filesystem",
		"files are watched where they are served",
	},
	{
		"codeberg.org/readeck/go-readability", "app/internal/serve/servers/fetch/article",
		"pages of strangers are bounded before they are read, in one place",
	},
	{
		"github.com/JohannesKaufmann/html-to-markdown", "app/internal/serve/servers/fetch/article",
		"pages of strangers are bounded before they are read, in one place",
	},
	{
		"net/http",
		"transport/... oauth/... netguard host mcptest internal/linktest internal/webtest contrib/... app/... conformance/... bench/... app/interop/... examples/... release",
		"the vocabulary, the server and the client know no transport",
	},
	{
		"golang.org/x/net", "app/internal/serve/servers/fetch app/internal/serve/servers/fetch/article app/internal/serve app/interop/...",
		"the standard library has what others need of it",
	},
	{
		"github.com/prometheus", "contrib/prometheus/... examples/...",
		"the page of metrics is written without it; tests hold it to the parser",
	},
	{
		"golang.org/x/text", "policy app/internal/serve/servers/filesystem app/internal/store/records app/internal/authserver/userauth release",
		"paths are compared in one place, names of files, names of users and passwords in one each",
	},
}

// workspace lists the modules of go.work: those that change together and need
// no foreign SDK.
var workspace = []string{".", "./app", "./conformance", "./contrib/otel", "./contrib/prometheus"}

// dependencies gives, for each module of the workspace, the modules it
// requires directly and the record of the decision for each.
var dependencies = map[string]map[string]string{
	".": {
		"github.com/go-json-experiment/json":       "docs/decisions/0001-json-codec.md",
		"github.com/santhosh-tekuri/jsonschema/v6": "docs/decisions/0002-json-schema.md",
		"github.com/yosida95/uritemplate/v3":       "docs/decisions/0003-uri-templates.md",
		"github.com/coder/websocket":               "docs/decisions/0015-websocket.md",
		"github.com/go-jose/go-jose/v4":            "docs/decisions/0019-go-jose.md",
		"golang.org/x/text":                        "docs/decisions/0061-policy.md",
		"golang.org/x/time":                        "docs/decisions/0005-x-time.md",
		"github.com/google/go-cmp":                 "docs/decisions/0006-go-cmp.md",
		"go.yaml.in/yaml/v3":                       "docs/decisions/0058-yaml.md",
	},
	"./app": {
		"github.com/spf13/cobra":                          "docs/decisions/0007-cobra.md",
		"github.com/go-git/go-git/v5":                     "docs/decisions/0084-go-git.md",
		"github.com/HdrHistogram/hdrhistogram-go":         "docs/decisions/0078-hdrhistogram.md",
		"charm.land/bubbles/v2":                           "docs/decisions/0073-terminal-screen.md",
		"charm.land/bubbletea/v2":                         "docs/decisions/0073-terminal-screen.md",
		"charm.land/lipgloss/v2":                          "docs/decisions/0073-terminal-screen.md",
		"github.com/charmbracelet/x/ansi":                 "docs/decisions/0073-terminal-screen.md",
		"github.com/tailscale/hujson":                     "docs/decisions/0062-hujson.md",
		"go.yaml.in/yaml/v3":                              "docs/decisions/0058-yaml.md",
		"golang.org/x/sys":                                "docs/decisions/0067-x-sys.md",
		"golang.org/x/term":                               "docs/decisions/0008-x-term.md",
		"github.com/rogpeppe/go-internal":                 "docs/decisions/0009-testscript.md",
		"modernc.org/sqlite":                              "docs/decisions/0020-sqlite.md",
		"github.com/jackc/pgx/v5":                         "docs/decisions/0021-pgx.md",
		"github.com/zalando/go-keyring":                   "docs/decisions/0022-keyring.md",
		"filippo.io/age":                                  "docs/decisions/0023-age.md",
		"golang.org/x/crypto":                             "docs/decisions/0024-x-crypto.md",
		"github.com/coreos/go-oidc/v3":                    "docs/decisions/0025-go-oidc.md",
		"github.com/fsnotify/fsnotify":                    "docs/decisions/0080-fsnotify.md",
		"golang.org/x/oauth2":                             "docs/decisions/0025-go-oidc.md",
		"go.opentelemetry.io/otel":                        "docs/decisions/0038-opentelemetry.md",
		"go.opentelemetry.io/otel/sdk":                    "docs/decisions/0038-opentelemetry.md",
		"go.opentelemetry.io/otel/trace":                  "docs/decisions/0038-opentelemetry.md",
		"codeberg.org/readeck/go-readability/v2":          "docs/decisions/0081-html.md",
		"github.com/JohannesKaufmann/html-to-markdown/v2": "docs/decisions/0081-html.md",
		"golang.org/x/net":                                "docs/decisions/0083-x-net.md",
		"golang.org/x/text":                               "docs/decisions/0089-x-text.md",
		"github.com/prometheus/common":                    "docs/decisions/0039-prometheus.md",
	},
	"./conformance": {},
	"./contrib/otel": {
		"go.opentelemetry.io/otel":            "docs/decisions/0038-opentelemetry.md",
		"go.opentelemetry.io/otel/metric":     "docs/decisions/0038-opentelemetry.md",
		"go.opentelemetry.io/otel/sdk":        "docs/decisions/0038-opentelemetry.md",
		"go.opentelemetry.io/otel/sdk/metric": "docs/decisions/0038-opentelemetry.md",
		"go.opentelemetry.io/otel/trace":      "docs/decisions/0038-opentelemetry.md",
	},
	"./contrib/prometheus": {
		"github.com/prometheus/client_golang": "docs/decisions/0039-prometheus.md",
		"github.com/prometheus/common":        "docs/decisions/0039-prometheus.md",
	},
}

// maxLines is the length that a file of code, tests aside, must not exceed.
const maxLines = 600

// limits are the most methods and fields of state of a type, and the most files and lines of a package of the
// program, tests aside.
var limits = map[string]int{"methods": 60, "fields": 20, "files": 40, "lines": 8000}

// large are the types and packages that are above a limit today, with how large they may be. None is added, and
// the numbers only fall.
var large = map[string]int{
	"methods of server.Server":                      94,
	"fields of server.Server":                       41,
	"methods of server.Call":                        158,
	"methods of client.Client":                      84,
	"fields of client.Client":                       34,
	"fields of client.call":                         34,
	"methods of host.Session":                       123,
	"fields of host.Session":                        35,
	"methods of oauth/issuer.Server":                178,
	"fields of oauth/issuer.Server":                 22,
	"methods of oauth/login.Client":                 77,
	"fields of transport/frame.writer":              22,
	"fields of transport/streamable.link":           23,
	"fields of transport/streamable.session":        30,
	"fields of ext/tasks.run":                       24,
	"fields of schema.node":                         23,
	"methods of app/internal/chat/tui.screen":       88,
	"fields of app/internal/chat/tui.screen":        47,
	"methods of app/internal/chat/tui/panel.Panel":  94,
	"fields of app/internal/chat/tui/panel.Panel":   32,
	"fields of app/internal/chat/tui/style.palette": 25,
	"fields of app/internal/ui.Line":                28,
	"fields of app/internal/tester.inspectFlags":    46,
	"fields of app/internal/tester.packageFlags":    21,
}

// revisionPackage is where the protocol revisions have their dates.
const revisionPackage = "internal/revision"

// datePackages are the packages where a protocol revision may be named by its
// date: internal/revision, and modules that are fixtures or measurements.
const datePackages = "internal/revision/... conformance/... bench/... app/interop/... examples/..."
