package chstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chstate/chstate/internal/clickhouse"
	"github.com/chstate/chstate/lock"
)

// config gives the options as the tables need them; defaults are filled in.
func (o Options) config() clickhouse.Config {
	return clickhouse.Config{
		Protocol: o.Protocol, Host: o.Host, Port: o.Port, Secure: o.Secure,
		Database: o.Database, User: o.User, Password: o.Password, AccessToken: o.AccessToken,
		SkipVerify: o.TLS.SkipVerify, CACert: o.TLS.CACert, ClientCert: o.TLS.ClientCert,
		ClientCertKey: o.TLS.ClientCertKey, ServerHostName: o.TLS.ServerHostName,
		ProxyPath: o.ProxyPath, HTTPProxy: o.HTTPProxy,
		ConnectTimeout: o.ConnectTimeout, SendReceiveTimeout: o.SendReceiveTimeout, ServerSettings: o.ServerSettings,
		Schema: o.Schema, Table: o.Table, CreateTables: o.CreateTables != "never",
		Cluster: o.Cluster, Engine: o.Engine, AsyncInsert: o.AsyncInsert, HistoryDays: o.HistoryDays,
		LockStrategy: o.Lock.Strategy, RetryFor: o.Lock.Wait, Logger: o.Logger, Progress: o.Progress,
	}
}

// wrap turns an error of the parts below into one of this package's, saying
// what was tried. op completes "cannot …".
func (s *Store) wrap(err error, op string, args ...any) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, ErrLockLost) {
		return err
	}
	if mine := (*Error)(nil); errors.As(err, &mine) {
		return err
	}
	op = bounded(fmt.Sprintf(op, args...))
	if busy := (*lock.BusyError)(nil); errors.As(err, &busy) {
		return lockedError(busy)
	}
	e := &Error{Kind: ErrServer, Op: op, Target: s.db.Target(), Reason: err.Error(), Err: err}
	switch {
	case errors.Is(err, lock.ErrLost):
		e.Kind = ErrLockLost
		e.Advice = "the write must be taken for not done; run the pipeline again. " +
			"A machine that was suspended, or a server that answers slowly, does this: see lock_timeout_seconds"
		return e
	case errors.Is(err, lock.ErrClosed):
		e.Kind, e.Reason = ErrClosed, "the store was closed, or its lock released, meanwhile"
		e.Advice = "whether a write that was under way is stored is not known"
		return e
	}
	var srv *clickhouse.Error
	if !errors.As(err, &srv) {
		return e
	}
	e.Code, e.Reason, e.Advice = srv.Code, srv.Reason, srv.Advice
	switch srv.Kind {
	case clickhouse.Connect, clickhouse.Login:
		e.Kind = ErrConnect
	case clickhouse.Invalid:
		e.Kind, e.Target = ErrInvalid, "" // nothing was sent
	}
	return e
}

// bounded keeps a line that names a state id readable, however long the id is.
func bounded(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func lockedError(busy *lock.BusyError) *LockedError {
	c := busy.Blocker
	e := &LockedError{
		ID: busy.Key, ClaimID: c.ID, Holder: c.Holder, Since: c.Holder.AcquiredAt,
		Waited: busy.Waited,
	}
	if busy.Now != 0 { // else it is this process's own
		e.Seen, e.FreeAt, e.Now = c.LockedAt.Time(), c.ExpiresAt.Time(), busy.Now.Time()
	}
	if e.Since.IsZero() {
		e.Since = e.Seen
	}
	return e
}
