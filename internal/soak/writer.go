package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/chstate/chstate"
)

// writerEnv holds, as JSON, what a process is to do as a writer.
const writerEnv = "CHSTATE_SOAK_WRITER"

type writerJob struct {
	Host, User, Password, Schema string
	Port, IDs                    int
	Name                         string // of this process; operations are named after it
}

// written is the state of each id: the operations done to it, in order. An
// operation that is lost, or is done twice, shows.
type written struct {
	Ops []string `json:"ops"`
}

// MaybeWriter does a writer's work and ends the process when it was started as
// one; otherwise it returns. A program that calls Run calls it first.
func MaybeWriter() {
	text, ok := os.LookupEnv(writerEnv)
	if !ok {
		return
	}
	var job writerJob
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = job.work(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work adds operations to states until stdin ends, and says of each whether it
// was acknowledged: "ack ID OP", or "err KIND". A panic or an unknown answer is
// for the reader to find.
func (j writerJob) work(stdin io.Reader, stdout io.Writer) error {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, stdin)
	}()
	o := chstate.Options{Host: j.Host, Port: j.Port, User: j.User, Password: j.Password, Schema: j.Schema, Command: "soak " + j.Name}
	o.Lock.Lease, o.Lock.Wait, o.Lock.Linger = 3*time.Second, 60*time.Second, 100*time.Millisecond
	s, err := chstate.Open(context.Background(), o)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(stdout)
	for n := 0; ; n++ {
		select {
		case <-over:
			return s.Close()
		default:
		}
		id, op := fmt.Sprintf("id-%02d", rand.N(j.IDs)), fmt.Sprintf("%s.%d", j.Name, n)
		if err := add(s, id, op); err != nil {
			fmt.Fprintf(out, "err %s %q\n", kind(err), err.Error())
		} else {
			fmt.Fprintf(out, "ack %s %s\n", id, op)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

// add appends an operation to a state, under its lock.
func add(s *chstate.Store, id, op string) error {
	ctx := context.Background()
	h, err := s.Lock(ctx, id)
	if err != nil {
		return err
	}
	defer h.Release()
	var w written
	switch st, err := h.Get(ctx); {
	case errors.Is(err, chstate.ErrNoState):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(st.Completed, &w); err != nil {
			return err
		}
	}
	w.Ops = append(w.Ops, op)
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return h.Set(ctx, chstate.State{Completed: text})
}

func kind(err error) string {
	for name, k := range map[string]error{
		"locked": chstate.ErrLocked, "lost": chstate.ErrLockLost, "connect": chstate.ErrConnect, "server": chstate.ErrServer,
		"corrupt": chstate.ErrCorrupt, "closed": chstate.ErrClosed,
	} {
		if errors.Is(err, k) {
			return name
		}
	}
	return "other"
}
