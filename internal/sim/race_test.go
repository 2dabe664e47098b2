//go:build race

package sim_test

func init() { defaultSeeds, repeats = 100, 15 } // each takes ten times as long
