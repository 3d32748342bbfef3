package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// rogueMain is a server of a handshake that does one thing wrong at one method, by hand. Its
// arguments are a file for its process id, the method, and what it does there.
func rogueMain() {
	if err := os.WriteFile(os.Args[1], fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		os.Exit(2)
	}
	r := &rogue{in: bufio.NewScanner(os.Stdin), at: os.Args[2], does: os.Args[3]}
	r.in.Buffer(nil, 16<<20)
	for r.in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(r.in.Bytes(), &m) == nil && m.Method != "" && m.ID != nil {
			r.request(string(m.ID), m.Method)
		}
	}
}

// A rogue is such a server.
type rogue struct {
	in       *bufio.Scanner
	at, does string
	page     int
}

// request answers a request, or does what is wrong.
func (r *rogue) request(id, method string) {
	result, known := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"rogue","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}`, "prompts/list": `{"prompts":[]}`,
		"tools/call": `{"content":[{"type":"text","text":"seen"}]}`, "ping": "{}",
	}[method]
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	switch {
	case !known:
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", id)
	case method == r.at:
		r.wrong(id, method, answer)
	default:
		fmt.Print(answer)
	}
}

// wrong answers wrongly.
func (r *rogue) wrong(id, method, answer string) {
	switch r.does {
	case "silent":
	case "twice":
		fmt.Print(answer, answer)
	case "wrong parts":
		result := `{"content":[{"type":"text","text":"seen"},{"type":"hologram","depth":3}]}`
		if method == "tools/list" {
			result = `{"tools":[{"name":"look","title":7,"annotations":{"readOnlyHint":"no"},"inputSchema":{"type":"object"}},{"name":"\u001b[31m"},{"name":9}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	case "another id":
		fmt.Printf(`{"jsonrpc":"2.0","id":"nobody's","result":{}}` + "\n")
	case "half":
		fmt.Print(answer[:len(answer)/2])
		os.Exit(0)
	case "no line end":
		fmt.Print(strings.TrimSpace(answer))
	case "10 MiB":
		fmt.Print(strings.Replace(answer, `"result":{`, `"result":{"more":"`+strings.Repeat("x", 10<<20)+`",`, 1))
	case "endless list":
		r.page++
		name, _, _ := strings.Cut(method, "/")
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"%s":[],"nextCursor":"%d"}}`+"\n", id, name, r.page)
	case "list in a circle":
		name, _, _ := strings.Cut(method, "/")
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"%s":[],"nextCursor":"again"}}`+"\n", id, name)
	case "broken UTF-8":
		fmt.Print(strings.Replace(answer, `"result":{`, `"result":{"more":"`+"\xff\xfe"+`",`, 1))
	case "logs":
		fmt.Print("starting up\n[info] \x1b[2Jready {\n\n", answer, "done\n")
	case "no result":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s}`+"\n", id)
	case "no object":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":[1]}`+"\n", id)
	case "HTML":
		fmt.Print("<html><body>It works!</body></html>\n")
	case "dies":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(3)
	case "asks":
		for n := 0; ; n++ { // until nobody answers
			fmt.Printf(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"And now?","requestedSchema":{"type":"object","properties":{}}}}`+"\n", n)
			if !r.in.Scan() {
				return
			}
		}
	case "floods":
		for n := range 20_000 {
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"flood %d"}}`+"\n", n)
		}
		fmt.Print(answer)
	}
}
