package front

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// stateKeyBytes is how long a state key is.
const stateKeyBytes = 32

// ReadStateKeys reads the --state-key-file flags. Without one the key is random
// and good for one run.
func ReadStateKeys(files []string) ([][]byte, error) {
	if len(files) == 0 {
		return [][]byte{[]byte(rand.Text())}, nil
	}
	var keys [][]byte
	for _, name := range files {
		key, err := readStateKey(name)
		if err != nil {
			return nil, kit.Usagef("--state-key-file: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readStateKey reads one key. Errors do not show what is in the file.
func readStateKey(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 4*stateKeyBytes))
	if err != nil {
		return nil, err
	}
	if len(text) == stateKeyBytes {
		return text, nil
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != stateKeyBytes {
		return nil, fmt.Errorf("%s: invalid key; the file must contain 32 random bytes, or 64 hexadecimal digits, which \"openssl rand -hex 32\" prints", name)
	}
	return key, nil
}
