package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// versionLayout writes a version, which is a moment of the server's clock, so
// that it can be given back.
const versionLayout = "2006-01-02T15:04:05.000Z07:00"

func versionText(t time.Time) string { return t.UTC().Format(versionLayout) }

// momentHelp explains what parseMoment takes.
const momentHelp = `a version as "chstate history" prints it, a time (2026-08-01T12:30:00Z; in UTC unless it says otherwise), or how long ago (90m, 2h, 7d)`

// parseMoment reads a version, a time, or an age.
func parseMoment(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
		"2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if age, err := parseAge(text); err == nil {
		return now.Add(-age), nil
	}
	return time.Time{}, usageError{fmt.Sprintf("%q is no moment: give %s", text, momentHelp)}
}

var ageParts = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(.*)$`)

// parseAge reads a duration as Go writes it, with d for 24 hours and w for 7 days as well.
func parseAge(text string) (time.Duration, error) {
	parts := ageParts.FindStringSubmatch(text)
	if parts == nil || text == "" {
		return 0, noAge(text)
	}
	const day = 24 * time.Hour
	var sum time.Duration
	for i, unit := range []time.Duration{7 * day, day} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 32)
		if err != nil || time.Duration(n) > (1<<62)/unit {
			return 0, fmt.Errorf("%q is too long a duration", text)
		}
		sum += time.Duration(n) * unit
	}
	if parts[3] != "" {
		rest, err := time.ParseDuration(parts[3])
		if err != nil {
			return 0, noAge(text)
		}
		sum += rest
	}
	if sum < 0 {
		return 0, fmt.Errorf("%q is less than nothing", text)
	}
	return sum, nil
}

func noAge(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return fmt.Errorf("%q has no unit: use a duration such as %ss or %sm", text, text, text)
	}
	return fmt.Errorf("%q is no duration: write it as 30s, 90m, 26h or 7d", text)
}

// age is a flag of that kind.
type age struct{ d time.Duration }

func (a *age) Set(text string) (err error) {
	a.d, err = parseAge(text)
	return err
}

func (a *age) String() string {
	if a.d == 0 {
		return ""
	}
	return a.d.String()
}

// Type is what help texts show for the value.
func (a *age) Type() string { return "duration" }

// ageText writes how long something is ago in two units at most: 45s, 12m, 5h12m, 3d4h.
func ageText(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	const day = 24 * time.Hour
	two := func(big, small time.Duration, b, s string) string {
		if rest := d % big / small; rest > 0 {
			return fmt.Sprintf("%s%d%s%d%s", sign, d/big, b, rest, s)
		}
		return fmt.Sprintf("%s%d%s", sign, d/big, b)
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%s%ds", sign, d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "m")
	default:
		return two(day, time.Hour, "d", "h")
	}
}
