// Package sim puts the lock (package lock, the very code that programs run) into
// a simulated world and checks its promises at every step. In that world every
// request and answer may be late, lost, repeated or overtaken, connections are
// cut before and after the effect, processes are stopped between any two steps
// for any time and killed, clocks run at different rates, the server's clock
// jumps, replicas answer late or with clocks of their own, tables merge and
// expire rows whenever they may, and others write without the lock.
//
// Time is testing/synctest's: a minute of it costs a millisecond. All chance
// comes from one seed, so that a run can be repeated.
package sim
