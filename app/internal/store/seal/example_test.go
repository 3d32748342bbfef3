package seal_test

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/app/internal/store/seal"
)

// A service is the client of a key management service, which keeps the key and encrypts with it.
type service interface {
	Encrypt(ctx context.Context, key string, plaintext, aad []byte) ([]byte, error)
	Decrypt(ctx context.Context, key string, ciphertext, aad []byte) ([]byte, error)
}

// A managed is a Wrapper whose key is in a key management service.
type managed struct {
	service service
	key     string
}

func (m managed) Wrap(ctx context.Context, name string, key []byte) ([]byte, error) {
	return m.service.Encrypt(ctx, m.key, key, []byte(name))
}

func (m managed) Unwrap(ctx context.Context, name string, wrapped []byte) ([]byte, error) {
	return m.service.Decrypt(ctx, m.key, wrapped, []byte(name))
}

// inProcess is a service for the example.
type inProcess map[string]*seal.Key

func (p inProcess) Encrypt(ctx context.Context, key string, plaintext, aad []byte) ([]byte, error) {
	return p[key].Wrap(ctx, string(aad), plaintext)
}

func (p inProcess) Decrypt(ctx context.Context, key string, ciphertext, aad []byte) ([]byte, error) {
	return p[key].Unwrap(ctx, string(aad), ciphertext)
}

// A key management service is plugged in with two methods; records.Options.SecretsKey takes it.
func ExampleWrapper() {
	ctx := context.Background()
	key, _ := seal.GenerateKey()
	kms := managed{inProcess{"issuer": key}, "issuer"}

	data := seal.NewDataKey(1)
	wrapped, err := data.Wrap(ctx, kms)
	if err != nil {
		fmt.Println(err)
		return
	}
	unwrapped, err := seal.Unwrap(ctx, kms, 1, wrapped)
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := unwrapped.Open(data.Seal([]byte("a private key"), "keys", "ES256"), "keys", "ES256")
	fmt.Printf("%s, %v\n", value, err)
	// Output: a private key, <nil>
}
