package main

import (
	"slices"
	"time"
)

// Stats are measurements of one thing: their median, and how far they spread.
type Stats struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
	Rounds int     `json:"rounds"`
}

// Line is one line of the table. bench/table.py reads it.
type Line struct {
	Part   string  `json:"part"`
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Ours   Stats   `json:"ours"`
	Beside string  `json:"beside,omitempty"` // what the floor is
	Floor  *Stats  `json:"floor,omitempty"`
	AtMost float64 `json:"at_most,omitempty"` // the target of the ratio; without a floor, of the median
}

const milliseconds = "ms"

// stats gives the statistics of any figures.
func stats(figures []float64) Stats {
	s := slices.Sorted(slices.Values(figures))
	at := func(q float64) float64 { return s[min(len(s)-1, int(q*float64(len(s))))] }
	return Stats{Median: at(0.5), P10: at(0.1), P90: at(0.9), Rounds: len(s)}
}

// one is a figure that is measured once.
func one(figure float64) Stats { return stats([]float64{figure}) }

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// timed runs f and gives how long it took, in milliseconds.
func timed(f func() error) float64 {
	began := time.Now()
	check(f())
	return ms(time.Since(began))
}

// pairs measures ours and the floor in turn, so that a noisy machine is noisy
// for both; the first tenth of the rounds warms up and does not count.
func pairs(rounds int, ours, floor func() error) (o, f Stats) {
	var os, fs []float64
	for i := range rounds + rounds/10 {
		bare, own := timed(floor), timed(ours)
		if i >= rounds/10 {
			os, fs = append(os, own), append(fs, bare)
		}
	}
	return stats(os), stats(fs)
}

// beside makes a line of pairs.
func beside(part, name, what string, atMost float64, rounds int, ours, floor func() error) Line {
	o, f := pairs(rounds, ours, floor)
	return Line{Part: part, Name: name, Unit: milliseconds, Ours: o, Beside: what, Floor: &f, AtMost: atMost}
}

// percentile gives the figure that a part q of the figures does not exceed.
func percentile(figures []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(figures))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}
