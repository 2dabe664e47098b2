package cli

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// passedOn are the signals that go on to a command under a lock.
var passedOn = []os.Signal{os.Interrupt, syscall.SIGTERM}

// group is a command and all that it starts: a job, which Windows ends when we
// do, so that nothing goes on without the lock.
type group struct {
	pid uint32
	job windows.Handle
}

func startGroup(child *exec.Cmd) (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	g := &group{job: job}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		g.close()
		return nil, err
	}
	// A group of its own, so that it can be sent Ctrl-Break without us.
	child.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := child.Start(); err != nil {
		g.close()
		return nil, err
	}
	g.pid = uint32(child.Process.Pid)
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, g.pid)
	if err == nil {
		err = windows.AssignProcessToJobObject(job, process)
		_ = windows.CloseHandle(process)
	}
	if err != nil {
		_ = child.Process.Kill()
		_ = child.Wait()
		g.close()
		return nil, err
	}
	return g, nil
}

// signal sends Ctrl-Break, the one that another group can be sent.
func (g *group) signal(os.Signal) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.pid)
}

func (g *group) terminate() { g.signal(nil) }
func (g *group) kill()      { _ = windows.TerminateJobObject(g.job, 1) }

// close ends what is left of the job.
func (g *group) close() { _ = windows.CloseHandle(g.job) }

func exitStatus(p *os.ProcessState) int { return p.ExitCode() }
