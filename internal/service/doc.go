// Package service is the long-lived child that the Python add-on talks to:
// one JSON object a line, requests on standard input, answers on standard
// output, logs on standard error.
//
// # The protocol
//
// The first line out names the protocol and the version:
//
//	{"protocol":1,"version":"0.1.0","pid":4711}
//
// Every request carries an id of the caller's choosing and the operation, and
// gets one answer with that id, in whatever order the work is done:
//
//	{"id":3,"op":"get","state_id":"dev:a-to-b"}
//	{"id":3,"ok":{"state":{"id":"dev:a-to-b","partial":null,"completed":"{\"singer_state\": {}}"}}}
//	{"id":3,"error":{"code":"connect","message":"cannot read state …"}}
//
// The halves of a state travel as JSON *strings*, so that nothing between
// Python and the table ever reads, and so rounds or reorders, what is in them.
//
// The first request is init. It carries the URI and the settings, secrets
// included, which is why they are in no argument and no file.
//
//	init                uri, settings, command, log_level
//	get, delete         state_id, hold
//	set                 state_id, hold, partial, completed
//	lock                state_id: {"hold":7}, as soon as it is acquired
//	release             hold; has no answer
//	ids, all            pattern: {"id":4,"chunk":[…]} again and again, then {"id":4,"ok":{}}
//	more                of: asks for one more chunk; has no answer
//	set_all             then put messages (of, states, last); the answer comes after the last
//	put                 has no answer of its own
//	clear_all, ensure, migrate, ping
//	cancel              of: gives up a request; has no answer
//	shutdown            ends the service; so does the end of its input
//
// A lock request stays open for as long as the lock is waited for, and keeps
// its place among the waiters; the caller, which waits in slices of its own,
// cancels it when it gives up. A hold that was granted to a request that is
// cancelled after all is released.
//
// The answers to lock, and to get and set under a hold, tell the revision of the
// state that is stored, where that is known: {"hold":7,"revision":12}. A caller
// that was told the same revision with an earlier answer about that state has
// it, and need not get it again.
//
// One message comes without having been asked for, when a hold ends before its release:
//
//	{"event":"lost","hold":7,"error":{"code":"lock_lost","message":"…"}}
//
// # The end
//
// A shutdown request, the end of input, a cancelled context or a parent
// process other than the one at the start end the service: what runs may
// finish for a moment, waits are given up, every lock is released, all of it
// within a bound, whatever the server does.
package service
