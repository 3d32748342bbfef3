package host_test

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// made builds a secret of the test, so that no scanner takes it for a real one.
func made(prefix string, n int) string {
	const letters = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
	return prefix + strings.Repeat(letters, n/len(letters)+1)[:n]
}

func pem(kind, body string) string {
	return "-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----"
}

var hexKey = strings.Repeat("0123456789abcdef", 4)

// secretCases are texts with one secret each, and what Redact makes of them.
var secretCases = []struct{ name, text, want string }{
	{"aws", "key " + "AKIA" + "Q3EGPIWSHTV7Z2KD" + " in use", "key [redacted: AWS access key] in use"},
	{"aws temporary", "ASIA" + "Q3EGPIWSHTV7Z2KD", "[redacted: AWS access key]"},
	{"aws secret", "aws_secret_access_key = " + made("", 40), "aws_secret_access_key = [redacted: AWS secret key]"},
	{"github", "use " + made("ghp_", 36) + " for it", "use [redacted: GitHub token] for it"},
	{"github app", made("ghs_", 36), "[redacted: GitHub token]"},
	{"github fine-grained", made("github_pat_", 82), "[redacted: GitHub token]"},
	{"gitlab", made("glpat-", 20), "[redacted: GitLab token]"},
	{"gitlab runner", made("glrt-", 20), "[redacted: GitLab token]"},
	{"slack bot", "xoxb-" + "123456789012-123456789012-" + made("", 24), "[redacted: Slack token]"},
	{"slack app", "xapp-1-" + "A0123456789-" + made("", 24), "[redacted: Slack token]"},
	{"slack webhook", "https://hooks.slack.com/services/" + "T00000000/B00000000/" + made("", 24), "https://hooks.slack.com/services/[redacted: Slack webhook]"},
	{"stripe", made("sk_live_", 24), "[redacted: Stripe key]"},
	{"stripe restricted", made("rk_test_", 24), "[redacted: Stripe key]"},
	{"stripe webhook", made("whsec_", 32), "[redacted: Stripe key]"},
	{"anthropic", made("sk-ant-api03-", 90), "[redacted: Anthropic API key]"},
	{"openai project", made("sk-proj-", 60), "[redacted: OpenAI API key]"},
	{"openai", made("sk-", 48), "[redacted: API key]"},
	{"google", made("AIza", 35), "[redacted: Google API key]"},
	{"google oauth", made("GOCSPX-", 28), "[redacted: Google OAuth secret]"},
	{"google access", made("ya29.", 60), "[redacted: Google OAuth secret]"},
	{"npm", made("npm_", 36), "[redacted: npm token]"},
	{"pypi", made("pypi-AgEIcHlwaS5vcmc", 60), "[redacted: PyPI token]"},
	{"hugging face", made("hf_", 34), "[redacted: Hugging Face token]"},
	{"sendgrid", made("SG.", 22) + "." + made("", 43), "[redacted: SendGrid API key]"},
	{"telegram", "123456789" + ":AA" + made("", 33), "[redacted: Telegram bot token]"},
	{"digitalocean", "dop_v1_" + hexKey, "[redacted: cloud provider's token]"},
	{"vault", made("hvs.", 30), "[redacted: cloud provider's token]"},
	{"age", "AGE-SECRET-KEY-1" + strings.Repeat("Q3ZD", 15), "[redacted: age secret key]"},
	{"jwt", "token is " + made("eyJ", 20) + "." + made("eyJ", 40) + "." + made("", 43) + ".", "token is [redacted: signed token (JWT)]."},
	{"azure storage", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + made("", 86) + "==;EndpointSuffix=core", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=[redacted: Azure key];EndpointSuffix=core"},
	{"azure bus", "SharedAccessKey=" + made("", 43) + "=", "SharedAccessKey=[redacted: Azure key]"},
	{"bearer", "Authorization: Bearer " + made("", 32), "Authorization: Bearer [redacted: bearer token]"},
	{"basic", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ada:lovelace")), "Authorization: Basic [redacted: basic credential]"},
	{"url", "https://ada:l0velace@example.com/x", "https://ada:[redacted: password in a URL]@example.com/x"},
	{"git url", "https://oauth2:" + made("", 20) + "@git.example.com/x.git", "https://oauth2:[redacted: password in a URL]@git.example.com/x.git"},
	{"postgres", "postgres://app:hunter2@db:5432/main", "postgres://app:[redacted: password in a URL]@db:5432/main"},
	{"mongodb", "mongodb+srv://app:hunter2@cluster0.example.net", "mongodb+srv://app:[redacted: password in a URL]@cluster0.example.net"},
	{"redis", "redis://:s3cr3t@localhost:6379/0", "redis://:[redacted: password in a URL]@localhost:6379/0"},
	{"query", "https://example.com/?a=1&access_token=" + made("", 20) + "&b=2", "https://example.com/?a=1&access_token=[redacted: token in a URL]&b=2"},
	{"signed url", "https://s3.example.com/x?X-Amz-Signature=" + hexKey, "https://s3.example.com/x?X-Amz-Signature=[redacted: token in a URL]"},
	{"private key", "a " + pem("RSA PRIVATE KEY", made("", 64)+"\n"+made("", 30)+"==") + " b", "a [redacted: private key] b"},
	{"openssh key", pem("OPENSSH PRIVATE KEY", made("", 64)), "[redacted: private key]"},
	{"encrypted key", pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\n\n"+made("", 64)), "[redacted: private key]"},
	{"pgp key", pem("PGP PRIVATE KEY BLOCK", made("", 64)), "[redacted: private key]"},
	{"cut key", "-----BEGIN PRIVATE KEY-----\n" + made("", 64) + "\n" + made("", 64) + "\nand more", "[redacted: private key]\nand more"},
	{"service account", `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\n` + made("", 64) + `\n-----END PRIVATE KEY-----\n"}`, `{"type":"service_account","private_key":"[redacted: private key]\n"}`},
	{"env file", "DB_HOST=db\nDB_PASSWORD=" + made("", 16) + "\nDEBUG=1", "DB_HOST=db\nDB_PASSWORD=[redacted: password or token beside its name]\nDEBUG=1"},
	{"yaml", "api_key: '" + made("", 24) + "'", "api_key: '[redacted: password or token beside its name]'"},
	{"json", `{"clientSecret": "` + made("", 24) + `"}`, `{"clientSecret": "[redacted: password or token beside its name]"}`},
	{"json in json", `{\"token\":\"` + made("", 24) + `\"}`, `{\"token\":\"[redacted: password or token beside its name]\"}`},
	{"hex token", "token=" + hexKey[:40], "token=[redacted: password or token beside its name]"},
	{"ruby", "secret => '" + made("", 20) + "'", "secret => '[redacted: password or token beside its name]'"},
	{"two", made("ghp_", 36) + " and " + made("npm_", 36), "[redacted: GitHub token] and [redacted: npm token]"},
}

// Proves: SEC-TOOL-5. Secrets of well-known shapes are found and can be taken
// out; what is around them stays.
func TestTextSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range secretCases {
		if got := host.Redact(c.text); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		if len(host.TextSecrets(c.text)) == 0 {
			t.Errorf("%s: nothing was found", c.name)
		}
	}
	if got := host.TextSecrets(secretCases[0].text); len(got) != 1 || got[0].Why != "looks like an AWS access key" {
		t.Errorf("got %v", got)
	}
}

// Proves: SEC-TOOL-5. A warning of what is no secret is one that teaches people
// not to read.
func TestNoTextSecrets(t *testing.T) {
	t.Parallel()
	random := make([]byte, 3000)
	chacha := rand.NewChaCha8([32]byte{1})
	if _, err := chacha.Read(random); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"",
		"The quick brown fox jumps over the lazy dog.",
		"123e4567-e89b-12d3-a456-426614174000",
		"token: 123e4567-e89b-12d3-a456-426614174000",
		"commit 9207619e0f3c4b8d9a6b1c2d3e4f5a6b7c8d9e0f",
		"key: 9207619e0f3c4b8d9a6b1c2d3e4f5a6b7c8d9e0f",
		"sha256:" + hexKey,
		"integrity sha512-" + made("", 86) + "==",
		"data:image/png;base64," + base64.StdEncoding.EncodeToString(random),
		base64.StdEncoding.EncodeToString(random[1:]),
		"https://example.com/a/b?page=2&q=hello+world",
		"https://example.com:8443/path",
		"https://user@example.com/x",
		"git@github.com:parley-mcp/parley.git",
		"ssh://git@example.com:22/x.git",
		"mailto:ada@example.com",
		"http://localhost:3000/@vite/client",
		"Use Bearer authentication for this endpoint.",
		"Send Authorization: Bearer <token>",
		"Authorization: Bearer ${API_TOKEN_1}",
		"Authorization: Bearer YOUR_TOKEN_12345678",
		"Basic understanding of internationalization",
		"basic functionality",
		"password: ${DB_PASSWORD_1}",
		"password=<your-password-123>",
		"api_key: xxxxxxxxxxxx1234",
		"token: ...",
		"The password must have at least 12 characters, one digit and one letter.",
		"secret: my-app-database-v2",
		"secretName: app-credentials-2024",
		"token_type: bearer; expires_in: 3600",
		"max_tokens=4096, stop_token=151645",
		`"nextPageToken": "CAUQAA1b2c3d4e5f6g7"`,
		"continuation_token=a1b2c3d4e5f6g7h8i9",
		"tokens used: 12345678901234",
		"postgres://localhost:5432/main",
		"postgres://app:${PGPASSWORD}@db/main",
		"mysql://user:password@localhost/db",
		"a task-management-tool-with-a-long-name-2",
		"sk-learn-like-estimators-with-long-names",
		"risk-free-investment-opportunities-in-2024",
		"eyJ is how a JSON object begins in base64",
		"arn:aws:iam::123456789012:role/Admin",
		"AKIA is the prefix of access keys",
		"ghp_ is the prefix of tokens",
		"2024-01-15T10:00:00Z password changed",
		"-----BEGIN CERTIFICATE-----\n" + made("", 64) + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n" + made("", 64),
		"ssh-ed25519 " + made("AAAAC3NzaC1lZDI1NTE5AAAA", 40) + " ada@example.com",
		"npm_config_registry=https://registry.npmjs.org/",
		"pypi-server-with-a-long-name-for-internal-use",
		"func (t *Token) String() string { return t.secret }",
		"secret := os.Getenv(\"APP_SECRET_V2\")",
		"const token = req.headers.authorization2",
		"password: /run/secrets/db_password_1",
		"Version: 1.25.3-alpine3.19",
		"The token bucket refills: 10 each second.",
	} {
		if got := host.TextSecrets(text); got != nil {
			t.Errorf("%.80q: %v", text, got)
		}
		if got := host.Redact(text); got != text {
			t.Errorf("%.80q became %.80q", text, got)
		}
	}
}

func TestSecretName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"password": true, "userPassword": true, "db_pwd": true, "apiKey": true, "api-key": true, "token": true, "accessToken": true,
		"client_secret": true, "Authorization": true, "privateKey": true, "connectionString": true, "credentials": true, "pin": true,
		"passphrase": true, "AccountKey": true,
		"name": false, "key": false, "tokens": false, "nextPageToken": false, "page_token": false, "pageToken": false, "max_token": false,
		"continuation_token": false, "syncToken": false, "opinion": false, "monkey": false, "author": false, "keyboard": false,
	} {
		if got := host.SecretName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// manySecrets are texts on which a slow search would take minutes.
func manySecrets() []string {
	const size = 1 << 18
	var list []string
	for _, part := range []string{
		"-----BEGIN PRIVATE KEY-----", "a://", "a:a@", "password=", "token:\"", "eyJaaaaaaaa.", "Bearer ", "x", "AKIA", "?key=", " ", "secret",
		made("ghp_", 36) + " ", "https://a:b1c2@",
	} {
		list = append(list, strings.Repeat(part, size/len(part)))
	}
	return list
}

func BenchmarkRedact(b *testing.B) {
	for _, text := range manySecrets() {
		b.Run(text[:4], func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				host.Redact(text)
			}
		})
	}
}

// Texts made to be slow are searched to their end.
func TestRedactLongTexts(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for _, text := range manySecrets() {
		end := " " + made("ghp_", 36)
		if out := host.Redact(text + end); strings.Contains(out, end) {
			t.Errorf("%q: the last secret is left", text[:8])
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range secretCases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := host.TextSecrets(text)
		out := host.Redact(text)
		if len(found) > 16 || (out == text) != (found == nil) {
			t.Errorf("%d found, and %q became %q", len(found), text, out)
		}
	})
}

// Proves: SEC-TOOL-5. What a form calls a secret is not kept, by the title of a field or of a part of
// it as by their names.
func TestSecretsByTitlesAreNotKept(t *testing.T) {
	const fields = `{"x":{"type":"string","title":"API key"},
		"deep":{"type":"object","properties":{"a":{"type":"string","title":"Your password"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"pin":{"type":"integer"}}}},
		"name":{"type":"string","title":"Next page token"}}`
	eras(t, func(t *testing.T, version string) {
		store := new(host.Memory)
		h := oneServer(t, &host.Options{Attended: true, Policy: allowing(t, "*"), Store: store}, version,
			server.Tool("form", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
				form := new(mcp.ElicitSchema)
				if err := form.Properties.UnmarshalJSON([]byte(fields)); err != nil {
					return "", err
				}
				_, err := server.Ask(ctx, &mcp.ElicitParams{Message: "Sign in", RequestedSchema: form}, nil)
				return "", err
			}))
		s := begin(t, h, &scripted{turns: []turn{use("one__form", "{}")}})
		attend(t, s, func(*host.Question) host.Answer {
			return host.Answer{Action: host.Approve, Values: map[string]mcp.RawValue{
				"x": mcp.RawValue(`"hunter2-title"`), "deep": mcp.RawValue(`{"a":"hunter2-deep"}`),
				"list": mcp.RawValue(`[{"pin":471199}]`), "name": mcp.RawValue(`"page 2"`),
			}}
		})
		ask(t, s)
		answers := bodies[*host.AnswerRecord](s)
		if len(answers) != 1 || string(answers[0].Values["name"]) != `"page 2"` {
			t.Fatalf("%+v", answers)
		}
		notKept(t, store, s, "hunter2-title", "hunter2-deep", "471199")
	})
}
