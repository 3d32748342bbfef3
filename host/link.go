package host

import "sync/atomic"

// A link is what questions of one server need to know of it.
type link struct {
	host    *Host
	spec    Server
	samples atomic.Int64 // uses of the model
	asked   atomic.Int64 // questions to the person
}
