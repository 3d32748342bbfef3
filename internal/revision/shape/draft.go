package shape

import "github.com/parley-mcp/parley/mcp"

// A draft is a value that is copied before the first change to it. No method of [Shape] takes one: the
// compiler makes the methods of an instantiated type again for each package that a type leads to it.
type draft[T any] struct {
	v      *T
	copied bool
}

// edit returns a copy that may be written to, the same each time.
func (d *draft[T]) edit() *T {
	if !d.copied {
		c := *d.v
		d.v, d.copied = &c, true
	}
	return d.v
}

// edited calls f with a draft of each element and returns the list with the
// changed ones in it: list itself if nothing was changed, else a new one.
func edited[T any](s *Shape, list []T, f func(*Shape, *draft[T]) error) ([]T, bool, error) {
	var out []T
	for i := range list {
		d := draft[T]{v: &list[i]}
		if err := f(s, &d); err != nil {
			return nil, false, err
		}
		if !d.copied {
			continue
		}
		if out == nil {
			out = append(out, list...)
		}
		out[i] = *d.v
	}
	if out == nil {
		return list, false, nil
	}
	return out, true, nil
}

// zero writes the zero value to what field finds in the draft, if it is not
// zero already.
func zero[T any, V comparable](d *draft[T], unknown bool, field func(*T) *V) {
	var none V
	if unknown && *field(d.v) != none {
		*field(d.edit()) = none
	}
}

// dropMeta is zero for metadata, which is absent when it is nil.
func dropMeta[T any](d *draft[T], unknown bool, field func(*T) *mcp.Meta) {
	if unknown && *field(d.v) != nil {
		*field(d.edit()) = nil
	}
}

// dropIcons leaves out icons.
func dropIcons[T any](d *draft[T], unknown bool, field func(*T) *[]mcp.Icon) {
	if unknown && *field(d.v) != nil {
		*field(d.edit()) = nil
	}
}

// paramsOf is a pointer to the params T of a request.
type paramsOf[T any] interface {
	*T
	mcp.Params
}

// resultOf is a pointer to the result T.
type resultOf[T any] interface {
	*T
	mcp.Result
}

// noticeOf is a pointer to the params T of a notification.
type noticeOf[T any] interface {
	*T
	NotificationMeta() *mcp.NotificationMeta
}

// request makes the translation of params of type T: what all requests need,
// then edit, which may be nil. Values of other types are not translated.
func request[T any, P paramsOf[T]](edit func(*Shape, *draft[T]) error) down {
	return func(s *Shape, v any) (any, error) {
		p, ok := v.(P)
		if !ok || p == nil {
			return v, nil
		}
		d := draft[T]{v: p}
		if !s.facts.MetaVersion && modernRequest(&p.Base().Meta) {
			m := &P(d.edit()).Base().Meta
			m.ProtocolVersion, m.ClientInfo, m.ClientCapabilities, m.LogLevel = "", nil, nil, ""
		}
		if r, ok := any(p).(mcp.Retryable); ok && !s.facts.InputRequired {
			if in := r.Input(); in.InputResponses != nil || in.RequestState != nil {
				*any(d.edit()).(mcp.Retryable).Input() = mcp.InputBase{}
			}
		}
		return finish(s, &d, edit)
	}
}

// result makes the translation of results of type T in the same way.
func result[T any, P resultOf[T]](edit func(*Shape, *draft[T]) error) down {
	return func(s *Shape, v any) (any, error) {
		p, ok := v.(P)
		if !ok || p == nil {
			return s.question(v)
		}
		d := draft[T]{v: p}
		base := p.Base()
		if !s.facts.ResultType && base.ResultType != "" {
			P(d.edit()).Base().ResultType = ""
		}
		if !s.facts.MetaVersion && (base.Meta.ServerInfo != nil || !base.Meta.SubscriptionID.IsZero()) {
			m := &P(d.edit()).Base().Meta
			m.ServerInfo, m.SubscriptionID = nil, mcp.ID{}
		}
		if c, ok := any(p).(mcp.CacheableResult); ok && !s.facts.Cacheable && *c.Hints() != (mcp.Cacheable{}) {
			*any(d.edit()).(mcp.CacheableResult).Hints() = mcp.Cacheable{}
		}
		return finish(s, &d, edit)
	}
}

// notice makes the translation of params of a notification in the same way.
func notice[T any, P noticeOf[T]](edit func(*Shape, *draft[T]) error) down {
	return func(s *Shape, v any) (any, error) {
		p, ok := v.(P)
		if !ok || p == nil {
			return v, nil
		}
		d := draft[T]{v: p}
		if !s.facts.ListenStreams && !p.NotificationMeta().SubscriptionID.IsZero() {
			P(d.edit()).NotificationMeta().SubscriptionID = mcp.ID{}
		}
		return finish(s, &d, edit)
	}
}

// answer makes the translation of a result of type T that a client gives.
func answer[T any](edit func(*Shape, *draft[T]) error) down {
	return func(s *Shape, v any) (any, error) {
		p, ok := v.(*T)
		if !ok || p == nil {
			return v, nil
		}
		return finish(s, &draft[T]{v: p}, edit)
	}
}

func finish[T any](s *Shape, d *draft[T], edit func(*Shape, *draft[T]) error) (any, error) {
	if edit != nil {
		if err := edit(s, d); err != nil {
			return nil, err
		}
	}
	return d.v, nil
}

func modernRequest(m *mcp.RequestMeta) bool {
	return m.ProtocolVersion != "" || m.ClientInfo != nil || m.ClientCapabilities != nil || m.LogLevel != ""
}

// question refuses an answer that is a question, where there is no such thing.
func (s *Shape) question(v any) (any, error) {
	if _, ok := v.(*mcp.InputRequiredResult); ok && !s.facts.InputRequired {
		return nil, s.cannot("a question in the answer to a request")
	}
	return v, nil
}

func (s *Shape) cannot(feature string) error {
	return &UnsupportedError{Feature: feature, Version: s.facts.Version}
}
