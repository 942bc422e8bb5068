package browser

// opener is the command that opens a file.
var opener = []string{"xdg-open"}

// display reports whether there is a display.
func display(env func(string) string) bool {
	return env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != ""
}
