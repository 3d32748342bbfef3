package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/login/browser"
)

// texts returns them one after the other, then io.EOF.
func texts(all ...string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if len(all) == 0 {
			return "", io.EOF
		}
		s := all[0]
		all = all[1:]
		return s, nil
	}
}

// paste has a person sign in by hand.
func pasteReader(t testing.TB, o *browser.ManualOptions, registered ...string) (string, url.Values, error) {
	t.Helper()
	if o.Show == nil {
		o.Show = func(string) {}
	}
	v, err := browser.NewManual(o).Begin(t.Context(), registered)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	values, err := v.Wait(t.Context(), parsed(t, authorizeURL), ours)
	return v.RedirectURI(), values, err
}

func TestManual(t *testing.T) {
	t.Parallel()
	const own = "http://127.0.0.1:41765/callback"
	want := url.Values{"code": {"c/d"}, "state": {"good"}, "iss": {"https://as.example"}}
	const query = "code=c/d&state=good&iss=https://as.example"
	for _, tt := range []struct {
		name, redirect, text, has string
	}{
		{"address", "", own + "?" + query, ""},
		{"address without scheme", "", "127.0.0.1:41765/callback?" + query, ""},
		{"other scheme", "", "https://127.0.0.1:41765/callback?" + query, ""},
		{"with fragment", "", own + "?" + query + "#_=_", ""},
		{"quoted and broken over lines", "", "\"" + own + "?\r\n  " + query + "\"\n", ""},
		{"query", "", query, ""},
		{"query with mark", "", "?" + query, ""},
		{"redirect URI with query", "https://app.example/cb?x=1", "https://app.example/cb?x=1&" + query, ""},
		{"another page", "", "https://as.example/login?" + query, "that is another address"},
		{"another port", "", "http://127.0.0.1:4176/callback?" + query, "that is another address"},
		{"longer path", "", own + "s?" + query, "that is another address"},
		{"authorization URL", "", authorizeURL, "that is another address"},
		{"redirect URI query is missing", "https://app.example/cb?x=1", "https://app.example/cb?" + query, "that is another address"},
		{"code alone", "", "abc", "a code alone is not enough"},
		{"no answer", "", own + "?scope=good", "no answer in it"},
		{"no answer, another state", "", own + "?state=bad", "no answer in it"},
		{"cut off before the code", "", own + "?state=good", "no answer in it"},
		{"code twice", "", own + "?" + query + "&code=d", "no answer in it"},
		{"code and error", "", own + "?" + query + "&error=access_denied", "no answer in it"},
		{"state twice", "", own + "?" + query + "&state=good", "belongs to another sign-in"},
		{"other sign-in", "", own + "?code=c&state=bad", "belongs to another sign-in"},
		{"too long", "", own + "?" + query + strings.Repeat("x", 17<<10), "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			redirect, got, err := pasteReader(t, &browser.ManualOptions{RedirectURI: tt.redirect, Read: texts("", "  \n", tt.text)})
			if tt.redirect == "" && redirect != own {
				t.Errorf("redirect URI %q", redirect)
			}
			if tt.has != "" {
				if err == nil || !strings.Contains(err.Error(), tt.has) || !strings.Contains(err.Error(), "begins with "+redirect) {
					t.Errorf("error %v, want one that says %q", err, tt.has)
				}
				if err != nil && strings.Contains(err.Error(), "code=") {
					t.Errorf("error %q shows what was pasted", err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestManualGoesOn(t *testing.T) {
	t.Parallel()
	var told []string
	var shown string
	_, got, err := pasteReader(t, &browser.ManualOptions{
		Show:    func(u string) { shown = u },
		Read:    texts("abc", "?code=c&state=bad", "?code=c&state=good"),
		Refused: func(err error) { told = append(told, err.Error()) },
	})
	if err != nil || got.Get("code") != "c" || len(told) != 2 || shown != authorizeURL {
		t.Errorf("%v, %v; told %q; shown %q", got, err, told, shown)
	}
	if _, _, err := pasteReader(t, &browser.ManualOptions{Read: texts("abc"), Refused: func(error) {}}); !errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
	reads := 0
	_, _, err = pasteReader(t, &browser.ManualOptions{Refused: func(error) {}, Read: func(context.Context) (string, error) {
		reads++
		return "abc", nil
	}})
	if err == nil || reads != 20 {
		t.Errorf("%d texts were read, %v", reads, err)
	}
}

func TestManualRedirect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		redirect   string
		registered []string
		want       string
	}{
		{"", nil, "http://127.0.0.1:41765/callback"},
		{"", []string{"https://app.example/cb", "http://localhost:1234/x"}, "http://localhost:1234/x"},
		{"https://app.example/cb", []string{"http://localhost:1234/x"}, "https://app.example/cb"},
	} {
		redirect, _, err := pasteReader(t, &browser.ManualOptions{RedirectURI: tt.redirect, Read: texts("code=c&state=good")}, tt.registered...)
		if redirect != tt.want || err != nil {
			t.Errorf("redirect URI %q, want %q, %v", redirect, tt.want, err)
		}
	}
	for _, o := range []*browser.ManualOptions{
		nil,
		{Show: func(string) {}},
		{Read: texts()},
		{Show: func(string) {}, Read: texts(), RedirectURI: "javascript:alert(1)"},
	} {
		if _, err := browser.NewManual(o).Begin(t.Context(), nil); err == nil {
			t.Errorf("%+v works", o)
		}
	}
}

// Proves: every way in which waiting for a person ends.
func TestManualEnds(t *testing.T) {
	t.Parallel()
	block := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	begin := func(t *testing.T, read func(context.Context) (string, error)) browser.Visit {
		t.Helper()
		v, err := browser.NewManual(&browser.ManualOptions{Show: func(string) {}, Read: read, Timeout: time.Hour}).Begin(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Run("timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := begin(t, block).Wait(t.Context(), parsed(t, authorizeURL), ours)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := begin(t, block)
			time.AfterFunc(time.Minute, func() { _ = v.Close() })
			start := time.Now()
			if _, err := v.Wait(t.Context(), parsed(t, authorizeURL), ours); err == nil || time.Since(start) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a Read that does not heed its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			release := make(chan struct{})
			v := begin(t, func(context.Context) (string, error) { <-release; return "", io.EOF })
			start := time.Now()
			if _, err := v.Wait(ctx, parsed(t, authorizeURL), ours); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute+time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			close(release)
		})
	})
}

// FuzzPaste: no text makes a response that is not ours, and no error shows any.
func FuzzPaste(f *testing.F) {
	for _, s := range []string{
		"http://127.0.0.1:41765/callback?code=c&state=good", "code=c&state=good", "?error=x&state=good", "abc",
		"127.0.0.1:41765/callback?state=good&code=%zz", "://?=&", "code=\xff&state=good#x", "state=good",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, values, err := pasteReader(t, &browser.ManualOptions{Read: texts(text)})
		if err != nil {
			if len(text) > 12 && strings.Contains(err.Error(), text) && !strings.Contains("http://127.0.0.1:41765/callback", text) {
				t.Errorf("error %q shows the text", err)
			}
			return
		}
		if !ours(values) || !values.Has("code") && !values.Has("error") || len(values["code"]) > 1 {
			t.Errorf("%q gave %v", text, values)
		}
	})
}

// The person opens the URL on a machine with a browser, and pastes where they
// ended.
func ExampleManual() {
	manual := browser.NewManual(&browser.ManualOptions{
		Show: func(u string) { fmt.Println("Open", u) },
		Read: func(context.Context) (string, error) {
			return "http://127.0.0.1:41765/callback?code=abc&state=xyz", nil // from the terminal
		},
	})
	ctx := context.Background()
	visit, err := manual.Begin(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer visit.Close()
	response, err := visit.Wait(ctx, &url.URL{Scheme: "https", Host: "as.example", Path: "/authorize"},
		func(v url.Values) bool { return v.Get("state") == "xyz" })
	fmt.Println(response.Get("code"), err)
	// Output:
	// Open https://as.example/authorize
	// abc <nil>
}
