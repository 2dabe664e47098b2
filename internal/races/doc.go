// Package races tests the lock with what it is for: processes of their own, on
// a real ClickHouse, that are stopped, killed and cut off at the wrong moment.
//
// Each child is the test binary started anew (child_test.go), with a store of
// its own, and does what the test tells it over a pipe (process_test.go). There
// is nothing but tests here.
package races
