package wallclock

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programVariable makes the test binary one of these programs.
const programVariable = "KATBOX_TEST_WALLCLOCK_PROGRAM"

var programs = map[string]func(){
	"obedient": obedient,
	"busy":     busy,
	"parent":   parent,
	"blocked":  blocked,
	"deprived": deprived,
}

func TestMain(m *testing.M) {
	if program := programs[os.Getenv(programVariable)]; program != nil {
		program()
		return
	}
	os.Exit(m.Run())
}

// rightsVariable, set to 1, makes a test fail that would otherwise be skipped
// for want of rights.
const rightsVariable = "KATBOX_ROOT_TESTS"

// needRights lets the test go on only as root, or as root of a user namespace.
func needRights(t testing.TB) {
	t.Helper()
	var rights [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &rights[0]); err != nil {
		t.Fatal(err)
	}
	const missing = "needs CAP_SYS_ADMIN; run it as root, or under unshare --user --map-root-user --mount"
	switch {
	case rights[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0:
	case os.Getenv(rightsVariable) == "1":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}

// program prepares one of the programs.
func program(name string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), programVariable+"="+name)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	return cmd
}

// obedient answers each line of its input with a line, until the input ends.
func obedient() {
	start := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		order, count, _ := strings.Cut(lines.Text(), " ")
		switch order {
		case "time":
			// The difference is taken with the monotonic clock.
			now := time.Now()
			fmt.Println(now.UnixNano(), int64(now.Sub(start)))
		case "ask":
			n, _ := strconv.Atoi(count)
			for range n {
				_ = time.Now()
			}
			fmt.Println("asked")
		case "nap":
			<-time.After(300 * time.Millisecond)
			fmt.Println("rested")
		case "coarse":
			var t unix.Timespec
			_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t)
			fmt.Println(t.Sec)
		case "whole":
			fmt.Println(askWhole())
		case "nowhere":
			_, _, errno := unix.Syscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, 1, 0)
			fmt.Println(errno == unix.EFAULT)
		case "shell":
			out, err := exec.Command("/bin/sh", "-c", "date >/dev/null && (echo in the shell) && exit 3").Output()
			fmt.Printf("%s %v\n", strings.TrimSpace(string(out)), err)
		case "trap":
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, unix.SIGTERM)
			fmt.Println("trapped")
			<-signals
			fmt.Println("told to end")
			os.Exit(7)
		}
	}
}

// askWhole asks the system calls that know only the wall clock. Each writes the
// seconds first.
func askWhole() (seconds []int64) {
	for number := range wholeQuestions {
		var t [2]int64
		_, _, errno := unix.Syscall(uintptr(number), uintptr(unsafe.Pointer(&t)), 0, 0)
		if errno != 0 {
			return nil
		}
		seconds = append(seconds, t[0])
	}
	return seconds
}

// busy asks for the time as often as it can, from several threads.
func busy() {
	for range 4 {
		go func() {
			for {
				_ = time.Now()
			}
		}()
	}
	select {}
}

// parent starts a program under a clock and waits to be killed.
func parent() {
	var c Clock
	cmd := program("obedient")
	cmd.Stdout = os.Stdout
	// It would end by itself at the end of its input.
	if _, err := cmd.StdinPipe(); err != nil {
		panic(err)
	}
	if err := c.Start(cmd); err != nil {
		panic(err)
	}
	fmt.Println("started")
	select {}
}

// blocked starts a program where /proc is missing, and tells what came of it.
func blocked() {
	if err := unix.Mount("none", "/proc", "tmpfs", 0, ""); err != nil {
		panic(err)
	}
	report("/bin/true")
}

// deprived starts a program without the right to.
func deprived() { report("/proc/self/exe") }

// report starts the file and prints the error and whether there is a child.
func report(file string) {
	var c Clock
	err := c.Start(exec.Command(file))
	_, none := unix.Wait4(-1, nil, unix.WNOHANG, nil)
	fmt.Printf("%v\nchildren: %v\n", err, none)
}
