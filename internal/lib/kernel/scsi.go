package kernel

import (
	"errors"
	"fmt"
	"unsafe"
)

var (
	// ErrSCSI: the device refused a SCSI command, or the way to it is down.
	ErrSCSI = errors.New("SCSI command refused")
	// ErrIllegal is an [ErrSCSI]: the device does not know the command, or the page that it asks for.
	ErrIllegal = fmt.Errorf("%w as illegal", ErrSCSI)
)

// VitalProductData asks an open SCSI device for a page of its vital product data (INQUIRY) and returns what it
// answers. It changes nothing, and waits while the device's transport is blocked.
func VitalProductData(fd int, page byte) ([]byte, error) {
	const sgIO, fromDevice, milliseconds = 0x2285, -3, 30_000
	const checkCondition, illegalRequest = 2, 5
	var data [255]byte
	var sense [32]byte
	command := [6]byte{0x12, 1, page, 0, byte(len(data))}
	// This is struct sg_io_hdr.
	request := struct {
		interfaceID, direction                int32
		commandLength, maxSense               uint8
		_                                     uint16
		length                                uint32
		data, command, sense                  unsafe.Pointer
		timeout, flags                        uint32
		_                                     int32
		_                                     unsafe.Pointer
		status, masked, message, senseWritten uint8
		hostStatus, driverStatus              uint16
		residual                              int32
		duration, info                        uint32
	}{
		interfaceID: 'S', direction: fromDevice, commandLength: uint8(len(command)), maxSense: uint8(len(sense)), length: uint32(len(data)),
		data: unsafe.Pointer(&data), command: unsafe.Pointer(&command), sense: unsafe.Pointer(&sense), timeout: milliseconds,
	}
	if err := IgnoreEINTR(func() error { return ioctl(fd, sgIO, unsafe.Pointer(&request)) }); err != nil {
		return nil, err
	}
	if request.status == checkCondition && request.hostStatus == 0 && senseKey(sense[:]) == illegalRequest {
		return nil, fmt.Errorf("%w: sense %x", ErrIllegal, sense[:min(int(request.senseWritten), len(sense))])
	}
	if request.status != 0 || request.hostStatus != 0 || request.driverStatus != 0 {
		return nil, fmt.Errorf("%w: status %#x, host %#x, driver %#x, sense %x", ErrSCSI, request.status, request.hostStatus,
			request.driverStatus, sense[:min(int(request.senseWritten), len(sense))])
	}
	return data[:len(data)-min(max(int(request.residual), 0), len(data))], nil
}

// senseKey returns the key of what a device has to say about a command, in either of its formats.
func senseKey(sense []byte) byte {
	const descriptors = 0x72
	if sense[0]&0x7f >= descriptors {
		return sense[1] & 0xf
	}
	return sense[2] & 0xf
}
