package wallclock

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// hideVDSO makes the entry of the auxiliary vector that tells the address of the
// vDSO one that is to be ignored. The vector comes after the arguments and the
// environment (see getauxval(3)), and ends with an entry of type 0.
func hideVDSO(pid int) error {
	address, err := stackStart(pid)
	if err != nil {
		return err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	s := stack{memory: memory, address: address}
	arguments := s.next()
	s.address += 8 * (int64(arguments) + 1)
	for s.next() != 0 { // the environment
	}
	for {
		const ignore, addressOfVDSO = 1, 33
		at := s.address
		kind := s.next()
		s.next() // its value
		switch {
		case s.err != nil:
			return fmt.Errorf("read its auxiliary vector: %w", s.err)
		case kind == 0:
			return nil // this machine has none
		case kind == addressOfVDSO:
			_, err := memory.WriteAt(binary.NativeEndian.AppendUint64(nil, ignore), at)
			return err
		}
	}
}

// stackStart is where a program that has not run yet finds the number of its
// arguments.
func stackStart(pid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	// The command's name, the second field, may contain anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const startstack = 28 - 3 // proc(5) counts from 1
	if len(fields) <= startstack {
		return 0, fmt.Errorf("%s has only %d fields", path, len(fields)+2)
	}
	start, err := strconv.ParseUint(fields[startstack], 10, 63)
	if err != nil {
		return 0, fmt.Errorf("the stack's address in %s: %w", path, err)
	}
	return int64(start), nil
}

// stack reads the words on a stack.
type stack struct {
	memory  *os.File
	address int64
	err     error // the first; all words are 0 afterwards
}

func (s *stack) next() uint64 {
	var word [8]byte
	if s.err == nil {
		_, s.err = s.memory.ReadAt(word[:], s.address)
		s.address += 8
	}
	if s.err != nil {
		return 0
	}
	return binary.NativeEndian.Uint64(word[:])
}
