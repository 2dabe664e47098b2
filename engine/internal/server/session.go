package server

import (
	"sync"
	"time"

	"github.com/chstate/chstate/engine/internal/sqltext"
)

// session is a connection that requests with one session_id share, one at a time:
// SET, USE and temporary tables last from one to the next. What a request's URL
// sets does not last, as in ClickHouse.
type session struct {
	*link
	id      string
	busy    bool
	expires *time.Timer
}

// sessions are the open ones.
type sessions struct {
	engine *Engine
	mu     sync.Mutex
	byID   map[string]*session
}

func newSessions(engine *Engine) *sessions {
	return &sessions{engine: engine, byID: map[string]*session{}}
}

// acquire takes the session that q names, making it unless q says that it must
// exist.
func (s *sessions) acquire(q *request) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open, ok := s.byID[q.session]; ok {
		if open.busy {
			return nil, codeSessionLocked.errorf("Session %s is locked by a concurrent client", q.session)
		}
		open.busy = true
		open.expires.Stop()
		return open, nil
	}
	if q.sessionCheck {
		return nil, codeNoSession.errorf("Session %s not found", q.session)
	}
	l, err := s.engine.take()
	if err != nil {
		return nil, err
	}
	open := &session{link: l, id: q.session, busy: true}
	open.expires = time.AfterFunc(time.Hour, func() { s.expire(open) })
	open.expires.Stop()
	s.byID[q.session] = open
	return open, nil
}

// release hands the session back; it closes unless it is used again in time.
func (s *sessions) release(open *session, q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open.busy = false
	if q.closeSession {
		s.drop(open)
		return
	}
	open.expires.Reset(q.sessionTimeout)
}

func (s *sessions) expire(open *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !open.busy && s.byID[open.id] == open {
		s.drop(open)
	}
}

func (s *sessions) drop(open *session) {
	delete(s.byID, open.id)
	open.expires.Stop()
	s.engine.discard(open.link)
}

// close ends every session that no request uses.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.byID {
		if !open.busy {
			s.drop(open)
		}
	}
}

// remember notes what a statement that succeeded changed for those to come.
func (s *session) remember(statement sqltext.Statement) {
	for name, value := range statement.Settings {
		s.set[name] = value
	}
	if statement.Verb == "USE" && statement.Database != "" {
		s.home, s.away = statement.Database, ""
	}
}
