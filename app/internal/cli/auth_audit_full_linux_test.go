package cli_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/oauth"
)

// The system writes a part of a line and no more, as on a full disk: the part is taken back, and the
// line is written once there is room.
func TestAuditDiskFull(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "audit")
	log := audit.New(file, nil)
	for range 16 { // larger than the files of the database
		if err := log.Append(t.Context(), map[string]string{"event": strings.Repeat("x", 1_000_000)}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, filepath.Join(dir, "issuer.db"), "--audit-file", file)
	p.fileLimit(uint64(info.Size()) + 100)
	made := url.Values{"grant_type": {"made up"}}
	if _, trouble := p.token(made); trouble != oauth.UnsupportedGrantType {
		t.Errorf("before anybody knows: %q", trouble)
	}
	if _, trouble := p.token(made); trouble != oauth.TemporarilyUnavailable {
		t.Errorf("with a full disk: %q", trouble)
	}
	if now, err := os.Stat(file); err != nil || now.Size() != info.Size() {
		t.Errorf("a part of a line is left: %v, %v", now, err)
	}
	p.fileLimit(unix.RLIM_INFINITY)
	(&place{t: t}).eventually(p.url+"/readyz", http.StatusOK, "")
	chain, err := audit.Verify(t.Context(), file, nil)
	if err != nil || chain.Lines != 17 {
		t.Errorf("%+v, %v", chain, err)
	}
}
