// Package chaos puts faults into the traffic between an MCP client and a server: delays, broken
// and reordered frames, connections that end, refusals of HTTP. It works on bytes, with no client
// and no server in the middle, over pipes ([Proxy.Pipe], [Proxy.Run]) and over HTTP
// ([Proxy.Handler]).
//
// # Determinism
//
// A frame is a line of a pipe, the body of an HTTP request or response, or an event of an event
// stream. Whether a fault is applied to a frame, which one, and how, is a function of the seed,
// the rates, and the place of the frame:
//
//   - on a pipe: the number of the connection, the direction, and the number of the frame in it;
//   - over HTTP: the method, the path and the body of the request, how many such requests came
//     before it, the direction, and the number of the frame in it.
//
// Time and scheduling have no part in it: a frame that was held back waits for the next one, not
// for a timer. So the same bytes in one direction give the same bytes out of it for the same seed.
// Where a fault ends a connection, the other direction ends too, wherever it is: what came out of
// it is then the beginning of what would have come out. An HTTP session that was expired is gone
// for every later request with its id. Requests of HTTP are counted up to a million different
// ones; those beyond are taken for the first of their kind.
package chaos
