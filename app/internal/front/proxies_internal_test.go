package front

import (
	"errors"
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
)

func TestReadProxies(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/33", "0.0.0.0/0", "::/0", "fe80::1%eth0", "10.0.0.1:80"} {
		if _, err := ReadProxies([]string{"10.0.0.1", bad}); !errors.As(err, new(*kit.UsageError)) {
			t.Errorf("--trusted-proxy %q: %v", bad, err)
		}
	}
	if list, err := ReadProxies([]string{"10.1.2.3/8", "2001:db8::1"}); err != nil || len(list) != 2 || list[0].String() != "10.0.0.0/8" || list[1].String() != "2001:db8::1/128" {
		t.Errorf("%v, %v", list, err)
	}
}
