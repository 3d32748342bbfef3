package admin_test

import (
	"net/url"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// A device asks one server, the person answers at another, and the device gets its tokens at either; of two
// polls at once with the answer one gets them.
func TestDeviceOnTwoServers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("ada")
		s.do("client add", `{"id":"tv","grant":["device_code","refresh_token"]}`)
		asked := new(struct {
			Device  string `json:"device_code"`
			User    string `json:"user_code"`
			Address string `json:"verification_uri"`
		})
		s.postAs("", "", s.second+"/device_authorization", url.Values{"client_id": {"tv"}, "resource": {resource}, "scope": {"read"}}, asked)
		poll := func(server string) *answer {
			return s.token(server, "tv", url.Values{"grant_type": {oauth.GrantDeviceCode}, "device_code": {asked.Device}})
		}
		if got := poll(s.second); got.Error != oauth.AuthorizationPending {
			t.Errorf("before the answer: %+v", got)
		}
		page, err := s.browser().FillIn(t.Context(), s.first+"/device", url.Values{
			"user_code": {asked.User}, "name": {"ada"}, "password": {password}, "answer": {"approve"},
		})
		if err != nil || page.Status != 200 {
			t.Fatalf("the person gets %+v, %v", page, err)
		}
		answers := make(chan *answer, 2)
		for _, server := range []string{s.first, s.second} {
			go func() { answers <- poll(server) }()
		}
		one, other := <-answers, <-answers
		if one.Error != "" {
			one, other = other, one
		}
		if one.Refresh == "" || other.Error != oauth.InvalidGrant {
			t.Errorf("two polls at once get %+v and %+v", one, other)
		}
	})
}
