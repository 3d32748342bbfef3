package authserver

import (
	"net/http"
)

// refuseProxied refuses what came through a proxy or a tunnel. It stands before a
// server without authentication: that it listens on this machine alone
// is worth nothing if something here hands on what comes from elsewhere.
func refuseProxied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
			if len(r.Header.Values(name)) > 0 {
				http.Error(w, "requests through a proxy are not allowed with --auto-approve", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
