package issuer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/oauth"
)

// Kinds of records of the device flow (RFC 8628), none of which changes once it
// is stored. kindDevice is what a device asked for, under the hash of its device
// code; the request that takes it away gets the tokens. kindUserCode is the same under
// the keyed hash of the user code; the person who takes it away is the one whose answer counts.
// kindDeviceAnswer is that answer, under the hash of the device code.
const (
	kindDevice       = "device"
	kindUserCode     = "user-code"
	kindDeviceAnswer = "device-answer"
)

// A deviceRequest is what a device asks for.
type deviceRequest struct {
	// Device is the hash of the device code.
	Device   string    `json:"device"`
	Client   string    `json:"client"`
	Scopes   []string  `json:"scopes,omitzero"`
	Resource string    `json:"resource"`
	Expires  time.Time `json:"expires"`
}

// A deviceAnswer is what the person said: the grant, or nothing if the answer was no.
type deviceAnswer struct {
	Grant string `json:"grant,omitzero"`
}

// expiredAge is how long a device is told that its code has expired; after it the
// code is unknown.
const expiredAge = 10 * time.Minute

// lastPoll is how long after the code has expired a device that waited for a person to
// answer at the last moment may come for its tokens.
func (s *Server) lastPoll() time.Duration { return 2 * s.opts.Device.Interval }

// serveDeviceAuthorization is the device authorization endpoint (RFC 8628,
// section 3.1), with client authentication as at the token endpoint.
func (s *Server) serveDeviceAuthorization(w http.ResponseWriter, r *http.Request) {
	q := &tokenRequest{Request: r, now: s.now()}
	q.event = Event{Name: "device.refused", GrantType: oauth.GrantDeviceCode, Remote: s.opts.Remote(r)}
	answer, err := s.authorizeDevice(w, q)
	if err != nil {
		s.refuseClient(w, q, err)
		return
	}
	q.event.Name, q.event.Outcome = "device.requested", "ok"
	s.audit(r.Context(), q.event)
	answerJSON(w, http.StatusOK, answer)
}

func (s *Server) authorizeDevice(w http.ResponseWriter, q *tokenRequest) (*oauth.DeviceAuthorization, error) {
	var err error
	if q.form, err = readForm(w, q.Request); err != nil {
		return nil, err
	}
	if err := s.identify(q, "device_authorization"); err != nil {
		return nil, err
	}
	if !slices.Contains(grantTypes(q.client), oauth.GrantDeviceCode) {
		return nil, refuse(oauth.UnauthorizedClient, "the client is not registered for this grant type", nil)
	}
	// Each leaves records that stay for a while, whatever client an address names.
	if wait, ok := s.allow(q.Request, "devices", ""); !ok {
		return nil, refuseWait(wait)
	}
	if err := s.noteClient(q.Context(), q.client); err != nil {
		return nil, err
	}
	res, err := s.resourceFor(q.Context(), q.form["resource"], q.client)
	if err != nil {
		return nil, err
	}
	asked, err := q.form.scopes()
	if err != nil {
		return nil, err
	}
	code, policy := oauth.NewSecret(), s.opts.Device
	d := &deviceRequest{Device: Hash(code), Client: q.client.ID, Resource: res.URI, Expires: q.now.Add(policy.Lifetime).UTC().Truncate(time.Second)}
	if d.Scopes, err = s.grantableScopes(res, q.client, asked); err != nil {
		return nil, err
	}
	q.event.Resource, q.event.Scopes = d.Resource, d.Scopes
	shown, hash, err := s.newUserCode(q.Context(), d)
	if err != nil {
		return nil, err
	}
	if err = s.storeRecord(q.Context(), kindDevice, code, d, policy.Lifetime+expiredAge); err == nil {
		err = s.putRecord(q.Context(), kindUserCode, hash, d, policy.Lifetime)
	}
	if err != nil {
		return nil, err
	}
	page := s.endpoint("device")
	return &oauth.DeviceAuthorization{
		DeviceCode: code, UserCode: shown, VerificationURI: page, VerificationURIComplete: page + "?user_code=" + url.QueryEscape(shown),
		ExpiresIn: int64(policy.Lifetime / time.Second), Interval: int64((policy.Interval + time.Second - 1) / time.Second),
	}, nil
}

// userCodeLetters are those of user codes: without vowels, so that they spell no
// words, and without letters and digits that look alike (RFC 8628, section 6.1).
// Eight of them are 34.5 bits, which the limits of guesses make enough (section 5.1).
const (
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// newUserCode makes a user code that no other device has, as people see it, and its hash.
func (s *Server) newUserCode(ctx context.Context, d *deviceRequest) (shown, hash string, err error) {
	const attempts = 5
	for range attempts {
		var code strings.Builder
		for i := range userCodeLength {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(userCodeLetters))))
			if err != nil {
				return "", "", fmt.Errorf("making a user code: %w", err)
			}
			if i == userCodeLength/2 {
				code.WriteByte('-')
			}
			code.WriteByte(userCodeLetters[n.Int64()])
		}
		hash, err := s.userCodeHash(ctx, s.now(), plainUserCode(code.String()))
		if err != nil {
			return "", "", err
		}
		free, err := s.store.UseID(ctx, kindUserCode, hash, d.Expires, s.now())
		if err != nil {
			return "", "", fmt.Errorf("making a user code: %w", err)
		}
		if free {
			return code.String(), hash, nil
		}
	}
	return "", "", errors.New("making a user code: all that were tried are taken")
}

// userCodeHash is what a user code is stored under: by the secret of the period that t is in, since
// so short a code could be found by its hash otherwise.
func (s *Server) userCodeHash(ctx context.Context, t time.Time, code string) (string, error) {
	return s.keys.derive(ctx, t, "user code", code)
}

// findUserCode reads what the device of a user code asks for, and returns the hash of the code. The code may
// be from the period before.
func (s *Server) findUserCode(ctx context.Context, code string, d *deviceRequest) (hash string, err error) {
	now := s.now()
	for _, t := range []time.Time{now, now.Add(-s.opts.Device.Lifetime)} {
		before := hash
		if hash, err = s.userCodeHash(ctx, t, code); err != nil {
			return "", err
		}
		if hash == before {
			break
		}
		if err := s.readRecord(ctx, kindUserCode, hash, d); !errors.Is(err, ErrNotFound) {
			return hash, err
		}
	}
	return "", ErrNotFound
}

// plainUserCode is a user code as it is compared: people may leave out the dash,
// add blanks, and write small letters. What cannot be a code is "".
func plainUserCode(typed string) string {
	if len(typed) > maxHint {
		return ""
	}
	plain := strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c), unicode.Is(unicode.Pd, c), c == '.', c == '_':
			return -1
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		}
		return c
	}, typed)
	if len(plain) != userCodeLength || strings.Trim(plain, userCodeLetters) != "" {
		return ""
	}
	return plain
}

// redeemDevice is the grant type of devices (RFC 8628, section 3.4). What is
// refused before the device code is taken away leaves the code as it is.
func (s *Server) redeemDevice(ctx context.Context, q *tokenRequest) (*oauth.TokenResponse, error) {
	code := q.form["device_code"]
	if code == "" {
		return nil, refuse(oauth.InvalidRequest, "device_code is required", nil)
	}
	var d deviceRequest
	err := s.readRecord(ctx, kindDevice, Hash(code), &d)
	if errors.Is(err, ErrNotFound) {
		return nil, s.refuseUsedDevice(ctx, q, Hash(code), err)
	}
	if err != nil {
		return nil, err
	}
	if d.Client != q.client.ID {
		return nil, refuse(oauth.InvalidGrant, badDevice, errors.New("device code of another client"))
	}
	var said deviceAnswer
	err = s.readRecord(ctx, kindDeviceAnswer, d.Device, &said)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, s.waiting(ctx, q, &d)
	case err != nil:
		return nil, err
	case said.Grant == "":
		return nil, refuse(oauth.AccessDenied, "the person said no", nil)
	}
	q.event.Grant = said.Grant
	if !q.now.Before(d.Expires.Add(s.lastPoll())) {
		err := s.store.RevokeGrant(ctx, said.Grant, q.now)
		return nil, cmp.Or(err, refuse(oauth.ExpiredToken, "the device did not come for its tokens in time", nil))
	}
	return s.answerDevice(ctx, q, &d, said.Grant)
}

// refuseUsedDevice refuses a device code that is not there. If its client had tokens for
// it before, somebody else has the code as well: what was granted ends, as with the code
// of a browser that is used twice (RFC 6749, section 4.1.2).
func (s *Server) refuseUsedDevice(ctx context.Context, q *tokenRequest, device string, cause error) error {
	var said deviceAnswer
	err := s.readRecord(ctx, kindDeviceAnswer, device, &said)
	if errors.Is(err, ErrNotFound) || err == nil && said.Grant == "" {
		return refuse(oauth.InvalidGrant, badDevice, cause)
	}
	if err != nil {
		return err
	}
	g, err := s.store.Grant(ctx, said.Grant, q.now)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrRevoked):
		return refuse(oauth.InvalidGrant, badDevice, cause)
	case err != nil:
		return err
	case g.ClientID != q.client.ID:
		return refuse(oauth.InvalidGrant, badDevice, errors.New("device code of another client"))
	}
	if err := s.store.RevokeGrant(ctx, g.ID, q.now); err != nil {
		return err
	}
	q.event.Name, q.event.Grant, q.event.Subject = "device.reused", g.ID, g.Subject
	return refuse(oauth.InvalidGrant, badDevice, errors.New("device code was already used"))
}

const badDevice = "the device code is not valid"

// waiting is the answer to a device whose person has not answered (RFC 8628,
// section 3.5). Of the requests within one interval all but the first are told to slow down.
func (s *Server) waiting(ctx context.Context, q *tokenRequest, d *deviceRequest) error {
	if !q.now.Before(d.Expires) {
		return refuse(oauth.ExpiredToken, "the person did not answer in time; ask for a new code", nil)
	}
	// A second less: clocks and networks make intervals a little shorter.
	next := q.now.Add(max(time.Second, s.opts.Device.Interval-time.Second))
	first, err := s.store.UseID(ctx, kindDevice, d.Device, next, q.now)
	switch {
	case err != nil:
		return fmt.Errorf("noting a poll: %w", err)
	case !first:
		return refuse(oauth.SlowDown, "wait 5 seconds longer between requests", nil)
	}
	return refuse(oauth.AuthorizationPending, "the person has not answered yet", nil)
}

// answerDevice gives the tokens of a grant to the one request that takes the device code away.
func (s *Server) answerDevice(ctx context.Context, q *tokenRequest, d *deviceRequest, grant string) (*oauth.TokenResponse, error) {
	g, err := s.store.Grant(ctx, grant, q.now)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrRevoked) {
		return nil, refuse(oauth.InvalidGrant, badDevice, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the grant of a device: %w", err)
	}
	a, err := s.redeemable(ctx, q, g, nil, badDevice)
	if err != nil {
		return nil, err
	}
	answer, err := s.accessToken(ctx, q, a)
	if err != nil {
		return nil, err
	}
	err = s.takeRecord(ctx, kindDevice, d.Device, new(deviceRequest))
	if errors.Is(err, ErrNotFound) {
		return nil, s.refuseUsedDevice(ctx, q, d.Device, err)
	}
	if err != nil {
		return nil, err
	}
	answer.RefreshToken, err = s.firstRefresh(ctx, q, a)
	if err != nil {
		return nil, errors.Join(err, s.store.RevokeGrant(ctx, g.ID, q.now)) // nothing will come of it any more
	}
	return answer, nil
}
