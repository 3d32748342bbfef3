package login_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth/login"
)

// secret is what no text form may show; its bytes are also looked for as
// numbers and in hexadecimal.
const secret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-s3cr3t"

// Attack: secrets in logs and messages: no text form of an exported type shows
// one, whatever verb or handler writes it and whatever it is part of. New
// fields are found by reflection: those that are no secrets are listed.
func TestNoSecretsInText(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed([]byte(secret[:ed25519.SeedSize]))
	credentials := fill(login.Credentials{Signer: key})
	token := fill(login.Token{})
	store := login.NewMemory()
	if err := store.Set(t.Context(), "tokens.x", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	options := login.Options{
		Store: store, Credentials: []login.Credentials{credentials}, DocumentSigner: key,
		Grant: login.EnterpriseManaged(login.EnterpriseOptions{Credentials: &credentials}),
	}
	client, _ := newClient(t, options)
	for name, v := range map[string]any{
		"Credentials": credentials, "*Credentials": &credentials, "[]Credentials": []login.Credentials{credentials},
		"Token": token, "*Token": &token, "in a struct": struct{ T login.Token }{token}, "in a map": map[string]login.Token{"a": token},
		"Client": client, "Source": client.Source("https://api.example"), "Transport": client.Transport(nil), "HTTPClient": client.HTTPClient(nil),
		"Memory": store, "Grant": options.Grant, "EnterpriseOptions": login.EnterpriseOptions{Credentials: &credentials},
		"Options": withoutKeys(options), "*Options": new(withoutKeys(options)),
	} {
		for _, text := range inText(v) {
			for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), "115 51 99 114 51", "0x73, 0x33, 0x63"} {
				if strings.Contains(text, form) {
					t.Errorf("%s shows the secret: %.200s", name, text)
				}
			}
		}
	}
	if !strings.Contains(fmt.Sprintf("%+v", credentials), "ClientID") || token.Access != secret || credentials.Secret != secret {
		t.Error("the test tests nothing")
	}
	if data, err := json.Marshal(map[string]any{"t": token, "c": credentials}); err != nil || bytes.Contains(data, []byte(secret)) {
		t.Errorf("JSON: %s %v", data, err)
	}
}

// withoutKeys leaves a bare key out, which says itself what it shows.
func withoutKeys(o login.Options) login.Options {
	o.DocumentSigner = nil
	return o
}

// fill puts the secret into each text of a struct that may be one.
func fill[T any](v T) T {
	s := reflect.ValueOf(&v).Elem()
	for i := range s.NumField() {
		field, name := s.Field(i), s.Type().Field(i).Name
		if field.Kind() != reflect.String {
			continue
		}
		switch name {
		case "Issuer", "ClientID", "Method", "Algorithm", "KeyID", "Type":
			field.SetString(name)
		default:
			field.SetString(secret)
		}
	}
	return v
}

// inText are the ways in which a value gets into a message or a log.
func inText(v any) (all []string) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%T"} {
		all = append(all, fmt.Sprintf(verb, v))
	}
	all = append(all, fmt.Errorf("about %v", v).Error())
	for _, handler := range []func(io.Writer) slog.Handler{
		func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		var b strings.Builder
		slog.New(handler(&b)).Info("said", "value", v, slog.Group("in", "value", v))
		all = append(all, b.String())
	}
	return all
}

// Exported types that hold or say something of tokens are known here, so that
// whoever adds a field decides whether it is a secret.
func TestStatusHasNoSecrets(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	welcome(t, c.HTTPClient(nil), rs.url())
	all, err := c.Status(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v %v", all, err)
	}
	_, tokens, _, _ := as.seen()
	hidden := []string{tokens[0].Get("code"), tokens[0].Get("code_verifier"), b.urls[0].Query().Get("state")}
	as.Lock()
	for token := range as.access {
		hidden = append(hidden, token)
	}
	for token := range as.refresh {
		hidden = append(hidden, token)
	}
	as.Unlock()
	said := inText(all[0])
	for _, v := range []any{c, &login.SignInRequiredError{Resource: rs.url()}, &login.DiscoveryError{URL: rs.url()}, &url.URL{}} {
		said = append(said, inText(v)...)
	}
	for _, text := range said {
		for _, s := range hidden {
			if s == "" || strings.Contains(text, s) {
				t.Errorf("%q is shown in %s", s, text)
			}
		}
	}
}
