package browser

import "net"

// Listeners are those of a visit of a Receiver.
func Listeners(v Visit) []net.Listener { return v.(*loopbackVisit).listeners }
