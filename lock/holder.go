package lock

import (
	"encoding/json"
	"os"
	"os/user"
	"strconv"
	"time"
)

// Holder tells people who holds a lock; the protocol itself never reads it.
// It is stored as JSON in the log's holder column.
type Holder struct {
	Host        string    `json:"host,omitempty"`
	PID         int       `json:"pid,omitempty"`
	User        string    `json:"user,omitempty"`
	Command     string    `json:"command,omitempty"`
	ToolVersion string    `json:"tool_version,omitempty"`
	AcquiredAt  time.Time `json:"acquired_at,omitzero"` // by the holder's own clock
	LeaseMillis int64     `json:"lease_ms,omitempty"`
}

// CurrentHolder describes this process. command is what a person typed,
// without secrets; version is that of the program.
func CurrentHolder(command, version string) Holder {
	h := Holder{PID: os.Getpid(), Command: command, ToolVersion: version}
	h.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		h.User = u.Username
	} else {
		h.User = "uid " + strconv.Itoa(os.Getuid())
	}
	return h
}

// Marshal gives the holder as the log stores it.
func (h Holder) Marshal() string {
	b, err := json.Marshal(h)
	if err != nil { // only an AcquiredAt outside the years 0–9999 gets here
		return ""
	}
	return string(b)
}

// ParseHolder reads what Marshal wrote. Rows of the older Python plugin have
// no holder, and rows written by hand may have anything: those give a zero Holder.
func ParseHolder(s string) Holder {
	var h Holder
	if json.Unmarshal([]byte(s), &h) != nil {
		return Holder{}
	}
	return h
}
