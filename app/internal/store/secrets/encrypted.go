package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"filippo.io/age"

	"github.com/parley-mcp/parley/app/internal/safefile"
)

var errNoPassphrase = errors.New("an encrypted store needs a passphrase")

// An ageVault encrypts with age, to a key that is itself in a file under the
// passphrase: so the passphrase is stretched, which takes a second, once per
// process and not once per access. Both files can be read with the age tool:
// age -d -i secrets.key secrets.age.
type ageVault struct {
	keyPath, dataPath string
	passphrase        string
	// work is how much the passphrase is stretched (log2 of scrypt's N); 0 is
	// age's default, of about a second.
	work int

	mu  sync.Mutex
	key *age.X25519Identity // nil until it is needed
}

var _ vault = (*ageVault)(nil)

func (v *ageVault) seal(content []byte) ([]byte, error) {
	key, err := v.identity()
	if err != nil {
		return nil, err
	}
	return sealTo(key.Recipient(), content)
}

func (v *ageVault) open(sealed []byte) ([]byte, error) {
	key, err := v.identity()
	if err != nil {
		return nil, err
	}
	return openWith(key, sealed)
}

// identity is the key, which is made if there is none, under the lock of the file.
func (v *ageVault) identity() (*age.X25519Identity, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.key != nil {
		return v.key, nil
	}
	sealed, err := readPrivate(v.keyPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.key, err = v.newIdentity()
	case err == nil:
		v.key, err = v.readIdentity(sealed)
	}
	return v.key, err
}

func (v *ageVault) readIdentity(sealed []byte) (*age.X25519Identity, error) {
	stretched, err := age.NewScryptIdentity(v.passphrase)
	if err != nil {
		return nil, errNoPassphrase
	}
	text, err := openWith(stretched, sealed)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return nil, errors.New("the passphrase is wrong")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.keyPath, err)
	}
	key, err := age.ParseX25519Identity(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s holds no key", v.keyPath)
	}
	return key, nil
}

func (v *ageVault) newIdentity() (*age.X25519Identity, error) {
	if _, err := os.Lstat(v.dataPath); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its key, %s, is missing", v.keyPath)
	}
	stretched, err := age.NewScryptRecipient(v.passphrase)
	if err != nil {
		return nil, errNoPassphrase
	}
	if v.work > 0 {
		stretched.SetWorkFactor(v.work)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, errors.New("key cannot be made")
	}
	sealed, err := sealTo(stretched, []byte(key.String()+"\n"))
	if err != nil {
		return nil, err
	}
	if err := safefile.Replace(v.keyPath, sealed, 0o600); err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	return key, nil
}

func sealTo(to age.Recipient, content []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return sealed.Bytes(), nil
}

func openWith(key age.Identity, sealed []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), key)
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	return content, nil
}
