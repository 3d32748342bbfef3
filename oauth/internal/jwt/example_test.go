package jwt_test

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

func Example() {
	key, err := jwt.NewKey("ES256")
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := key.Sign(jwt.TypeAccessToken, &jwt.Claims{
		Issuer:   "https://as.example",
		Subject:  "ada",
		Audience: []string{"https://mcp.example/mcp"},
		Expiry:   time.Now().Add(time.Minute),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := jwt.ParseSet(jwt.SetJSON(key))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, audience := range []string{"https://mcp.example/mcp", "https://other.example/"} {
		t, err := jwt.Verify(context.Background(), token, keys, &jwt.Check{
			Algorithms: jwt.DefaultAlgorithms(),
			Types:      []string{jwt.TypeAccessToken},
			Issuer:     "https://as.example",
			Audience:   []string{audience},
			NeedExpiry: true,
		})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(t.Claims.Subject)
	}
	// Output:
	// ada
	// audience is another
}

func ExampleKey_NewProof() {
	key, err := jwt.NewKey("ES256")
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	proof, err := key.NewProof("POST", "https://mcp.example/mcp", "", "token", now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, token := range []string{"token", "another"} {
		p, err := jwt.VerifyProof(proof, &jwt.ProofCheck{
			Method:      "POST",
			URL:         "https://MCP.example:443/mcp",
			AccessToken: token,
			Now:         now,
		})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.Thumbprint == key.Thumbprint())
	}
	// Output:
	// true
	// DPoP proof: it is for another access token
}
