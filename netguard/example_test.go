package netguard_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-mcp/parley/netguard"
)

// A client for pages that somebody else names.
func ExampleClient() {
	client := netguard.Client(&netguard.Rules{Plain: true, Decompress: true, UserAgent: "example/1.0"})
	defer client.CloseIdleConnections()
	for _, page := range []string{"http://169.254.169.254/latest/meta-data?x=1", "https://[::1]:8080/", "file:///etc/passwd"} {
		resp, err := client.Get(page)
		if blocked, ok := errors.AsType[*netguard.BlockedError](err); ok {
			fmt.Println(blocked)
			continue
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	// Output:
	// blocked: http://169.254.169.254/latest/meta-data: address 169.254.169.254 is not public (cloud metadata)
	// blocked: https://[::1]:8080/: address ::1 is not public (loopback); AllowHosts can allow it
	// blocked: file:///etc/passwd: must be https or http
}

// A transport for those with rules of their own for redirects.
func ExampleNewTransport() {
	rules := netguard.NewTransport(&netguard.Rules{AllowHosts: []string{"10.1.0.0/16", "intranet.example"}})
	defer rules.CloseIdleConnections()
	for _, page := range []string{"https://10.1.2.3/", "https://10.2.2.3/"} {
		req, err := http.NewRequest(http.MethodGet, page, nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(rules.Check(req.URL))
	}
	// Output:
	// <nil>
	// blocked: https://10.2.2.3/: address 10.2.2.3 is not public (private use); AllowHosts can allow it
}
