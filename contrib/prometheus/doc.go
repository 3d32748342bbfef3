// Package prommcp counts the requests of MCP servers and clients in a registry
// of Prometheus' own client:
//
//	s.Use(prommcp.Server(nil)) // nil: prometheus.DefaultRegisterer
//	s.Observe(prommcp.ServerObserver(nil))
//
// Its name is not that of its folder: programs that use it import a package
// prometheus already. Package metrics, below, says what is counted; it writes a
// page by itself, for programs without a registry.
package prommcp
