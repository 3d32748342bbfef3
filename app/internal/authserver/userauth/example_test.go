package userauth_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// An authorization server whose people sign in with passwords.
func ExampleNewPasswords() {
	hash, err := userauth.HashPassword("correct horse")
	if err != nil {
		fmt.Println(err)
		return
	}
	people := oneUser{name: "ada", hash: hash, subject: "5d1b8f"}
	server, err := issuer.New("https://as.example", issuer.NewMemory(), userauth.NewPasswords(people, nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Metadata().AuthorizationEndpoint)
	// Output: https://as.example/authorize
}

type oneUser struct{ name, hash, subject string }

func (oneUser) NormalName(name string) string { return strings.ToLower(name) }

func (u oneUser) User(_ context.Context, name string) (hash, subject, stamp string, err error) {
	if name != u.name {
		return "", "", "", issuer.ErrNotFound
	}
	return u.hash, u.subject, issuer.Hash(u.hash), nil
}

// One whose people sign in at the company's OpenID provider.
func ExampleNewUpstream() {
	login, err := userauth.NewUpstream(userauth.UpstreamOptions{
		Issuer: "https://id.example.com", ClientID: "parley", ClientSecret: "…",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(login.External())
	// Output: true
}
