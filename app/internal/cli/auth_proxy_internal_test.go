package cli

import "testing"

func TestReadProxies(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/33", "0.0.0.0/0", "::/0", "fe80::1%eth0", "10.0.0.1:80"} {
		if _, err := readProxies([]string{"10.0.0.1", bad}); exitCode(err) != exitUsage {
			t.Errorf("--trusted-proxy %q: %v", bad, err)
		}
	}
	if list, err := readProxies([]string{"10.1.2.3/8", "2001:db8::1"}); err != nil || len(list) != 2 || list[0].String() != "10.0.0.0/8" || list[1].String() != "2001:db8::1/128" {
		t.Errorf("%v, %v", list, err)
	}
}
