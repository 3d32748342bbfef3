package article

import (
	"net/url"
	"strings"
	"testing"
)

// No page makes the simplification fail otherwise than by an error, or its markdown large
// out of proportion.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"<html><body><article><h1>a</h1><p>b, c</p></article></body></html>", "<table><tr><td colspan=9>a<td>b</table>", "<ul><li>a<ol><li>b</ul>",
		"<b><p>a<i>b</b>c</p>", "<svg><title/><b></svg><p>a", "<select><option>a</form>b", "<pre><code>a\n`b`</code></pre>", "<plaintext><b>", "a<!--",
		"<p>\ufdd0&lt;a&gt;*_\ufdd1", "<blockquote>a<blockquote>b", "<title>a</title><a href='%zz'>b</a><img src='data:,x' alt=']'>", "<math><mi><b></math>c",
	} {
		f.Add(seed)
	}
	at := &url.URL{Scheme: "http", Host: "example.com", Path: "/a/"}
	f.Fuzz(func(t *testing.T, page string) {
		page = strings.ToValidUTF8(page, "\ufffd")
		a, err := Markdown(t.Context(), page, at, 1_000_000)
		markdown := a.Markdown
		if err != nil && markdown != "" {
			t.Errorf("there is an error, %v, and a text", err)
		}
		if len(markdown) > 100*(len(page)+100) {
			t.Errorf("%d bytes become %d", len(page), len(markdown))
		}
		if strings.ContainsAny(markdown, less+greater) {
			t.Error("characters that stand for others are left")
		}
	})
}
