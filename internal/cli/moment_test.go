package cli

import (
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-07-31T10:00:00.123Z":  "2026-07-31T10:00:00.123Z", // as history prints it
		"2026-07-31T10:00:00+02:00": "2026-07-31T08:00:00.000Z",
		"2026-07-31 10:00:00.5":     "2026-07-31T10:00:00.500Z",
		"2026-07-31 10:00":          "2026-07-31T10:00:00.000Z",
		"2026-07-31":                "2026-07-31T00:00:00.000Z",
		"90m":                       "2026-08-01T10:30:00.000Z",
		"2d":                        "2026-07-30T12:00:00.000Z",
		"1w1d12h":                   "2026-07-24T00:00:00.000Z",
		"0s":                        "2026-08-01T12:00:00.000Z",
	} {
		got, err := parseMoment(text, now)
		if err != nil || versionText(got) != want {
			t.Errorf("%q: %s, %v; want %s", text, versionText(got), err, want)
		}
	}
	for _, bad := range []string{"", "yesterday", "2026-13-01", "5", "-1h", "d", "99999999999999d", "1d2x"} {
		if got, err := parseMoment(bad, now); err == nil {
			t.Errorf("%q was taken for %s", bad, got)
		}
	}
}

func TestAgeText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 45 * time.Second: "45s", 12 * time.Minute: "12m", 12*time.Minute + 3*time.Second: "12m3s",
		5*time.Hour + 12*time.Minute: "5h12m", 26 * time.Hour: "1d2h", 100 * 24 * time.Hour: "100d", -90 * time.Second: "-1m30s",
	} {
		if got := ageText(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestShownCommand(t *testing.T) {
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"meltano", "run", "tap-a", "target-b"}, "meltano run tap-a target-b"},
		{[]string{"x", "--password", "s3cret", "--password=s3cret", "TOKEN=s3cret", "a=b"}, "x --password *** --password=*** TOKEN=*** a=b"},
		{[]string{"x", "--auth-token", "--verbose", "y"}, "x --auth-token --verbose y"},
		{[]string{"x", "clickhouse://u:s3cret@h/db", "mail@host"}, "x clickhouse://***@h/db mail@host"},
	} {
		if got := shownCommand(tt.words); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.words, got, tt.want)
		}
	}
	long := make([]string, 300)
	if got := shownCommand(long); len([]rune(got)) > 201 {
		t.Errorf("it has %d letters", len([]rune(got)))
	}
}
