package browser

// opener returns the command that opens a file.
func opener() ([]string, error) { return []string{"xdg-open"}, nil }

// display reports whether there is a display.
func display(env func(string) string) bool {
	return env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != ""
}
