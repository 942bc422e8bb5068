// Program answers each line of its input with one.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"
)

func main() {
	start := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "time":
			now := time.Now()
			fmt.Println(now.UnixNano(), int64(now.Sub(start)), int64(now.Round(0).Sub(start.Round(0))))
		case "timers":
			deadline, cancel := context.WithDeadline(context.Background(), time.Now().Add(300*time.Millisecond))
			timer := time.After(300 * time.Millisecond)
			fmt.Println("set")
			<-timer
			<-deadline.Done()
			cancel()
			fmt.Println("due")
		}
	}
}
