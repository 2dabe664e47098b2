package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/statedoc"
)

func (a *app) editCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit STATE_ID",
		Short: "Change a state in your editor",
		Long: `Open a state in $VISUAL or $EDITOR and write it back, as a complete state and under the
lock, when the editor has ended. To save is to agree: nothing is asked, and without a
change nothing is written. Where there is no state yet, an empty one is opened, and one
is made of what you save. A text that is no state is not written, nor is one over a
state that was changed meanwhile; the text is kept in a file then.`,
		Args: takes(1, "a state id"),
	}
	cmd.Flags().Bool("force", false, "does nothing here; taken because meltano state edit has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e := editing{a: a, id: args[0]}
		if err := a.work(func(ctx context.Context, _ []string) error { return e.read(ctx) })(cmd, args); err != nil {
			return err
		}
		if err := e.edit(); err != nil {
			return err
		}
		return a.work(func(ctx context.Context, _ []string) error { return e.write(ctx) })(cmd, args)
	}
	return cmd
}

// editing is one state on its way through an editor. Nothing is held, and no
// connection is open, while a person thinks.
type editing struct {
	a    *app
	id   string
	was  chstate.State // zero where there is none yet
	new  bool          // there is none yet
	text []byte        // as it was given to the editor
	file string
}

func (e *editing) read(ctx context.Context) error {
	return e.a.withStore(ctx, "edit "+e.id, func(s *chstate.Store) error {
		merged := []byte(`{"singer_state":{"bookmarks":{}}}`)
		st, err := s.Get(ctx, e.id)
		switch {
		case errors.Is(err, chstate.ErrNoState):
			e.new = true
			fmt.Fprintf(e.a.stderr, "There is no state %q. What you save becomes a new one; leave it as it is to make none.\n", e.id)
		case err != nil:
			return err
		default:
			e.was = st
			if merged, err = st.Merged(); err != nil {
				return err
			}
		}
		e.text, err = statedoc.Pretty(merged)
		return err
	})
}

// edit runs the editor on a file.
func (e *editing) edit() error {
	f, err := os.CreateTemp("", "chstate-*.json")
	if err != nil {
		return fmt.Errorf("cannot make a file for the editor: %w", err)
	}
	e.file = f.Name()
	_, err = f.Write(append(bytes.Clone(e.text), '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot write the file for the editor: %w", err)
	}
	// Ctrl-C belongs to the editor while it runs. (Caught rather than ignored:
	// the editor would inherit that.)
	ours := make(chan os.Signal, 1)
	signal.Notify(ours, os.Interrupt)
	defer signal.Stop(ours)
	editor, err := e.a.editor()
	if err != nil {
		os.Remove(e.file)
		return err
	}
	cmd := editorCommand(editor, e.file)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = e.a.env, e.a.stdin, e.a.stdout, e.a.errors
	if err := cmd.Run(); err != nil {
		os.Remove(e.file)
		select {
		case <-ours:
			return interrupted{errors.New("the editor was ended, and nothing was changed")}
		default:
		}
		return fmt.Errorf("the editor %q failed: %w — nothing was changed; $VISUAL or $EDITOR names another", editor, err)
	}
	return nil
}

func (e *editing) write(ctx context.Context) error {
	content, err := os.ReadFile(e.file)
	if err != nil {
		return fmt.Errorf("cannot read what was edited: %w", err)
	}
	err = calledOff(e.put(ctx, content))
	if err != nil {
		return fmt.Errorf("%w — what you wrote is in %s", err, e.file)
	}
	os.Remove(e.file)
	return nil
}

func (e *editing) put(ctx context.Context, content []byte) error {
	text, err := decodeState(content, "the edited state")
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		fmt.Fprintln(e.a.stderr, "Empty content provided - no changes made")
		return nil
	}
	if again, err := statedoc.Pretty(text); err == nil && bytes.Equal(again, e.text) {
		fmt.Fprintln(e.a.stderr, "No changes detected")
		return nil
	}
	shape, err := checkState(text, true)
	if err != nil {
		return err
	}
	e.a.warnOf(shape, text)
	if text, err = statedoc.Compact(text); err != nil {
		return err
	}
	return e.a.withStore(ctx, "edit "+e.id, func(s *chstate.Store) error {
		if err := s.Replace(ctx, e.was, chstate.State{ID: e.id, Completed: text}); err != nil {
			return err
		}
		done := "State for %s was updated.\n"
		if e.new {
			done = "State for %s was made.\n"
		}
		fmt.Fprintf(e.a.stderr, done, e.id)
		return nil
	})
}

// editor gives the command line of the person's editor. Where there is no
// terminal for one, it has to be named.
func (a *app) editor() (string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if value := strings.TrimSpace(a.getenv(name)); value != "" {
			return value, nil
		}
	}
	if !isTerminal(a.stdin) {
		return "", usageError{"there is no terminal for an editor: set $EDITOR to a command that changes the file, or use `chstate get` and `chstate set`"}
	}
	if runtime.GOOS == "windows" {
		return "notepad", nil
	}
	for _, name := range []string{"sensible-editor", "vim", "nano"} {
		if _, err := exec.LookPath(name); err == nil {
			return name, nil
		}
	}
	return "vi", nil
}

// editorCommand lets a shell read the command line, which may have arguments.
func editorCommand(editor, file string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		return exec.Command(words[0], append(words[1:], file)...)
	}
	return exec.Command("sh", "-c", editor+` "$1"`, "editor", file)
}

// getenv gives a variable of the tool's environment; the last of a name counts.
func (a *app) getenv(name string) string {
	for i := len(a.env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
