package report

import (
	"fmt"
	"html/template"
	"image/color"
	"slices"
	"strings"

	"github.com/katbox/katbox/soak/internal/workload"
)

// themeColor is a color of the page, with another value in dark mode. A chart is drawn
// with the light one, which no two of them share, and then refers to it by name.
type themeColor struct {
	Name        string
	Light, Dark template.CSS
	// shade: an area in this colour lets see what is behind it.
	shade bool
}

var (
	blue   = themeColor{Name: "blue", Light: "#1F6FB5", Dark: "#5AA9F0"}
	orange = themeColor{Name: "orange", Light: "#E07B1F", Dark: "#F29A4A"}
	red    = themeColor{Name: "red", Light: "#C62828", Dark: "#FF6B6B"}
	rule   = themeColor{Name: "rule", Light: "#E2E5E8", Dark: "#343A41"}
	grey   = themeColor{Name: "grey", Light: "#5F666D", Dark: "#A3ABB3"}

	// other is for a kind of fault that faultColors lacks.
	other = themeColor{Name: "other", Light: "#7A7F85", Dark: "#8F959B", shade: true}
)

// faultColors tell the kinds of faults apart.
var faultColors = map[workload.FaultKind]themeColor{
	workload.DaemonKill:     {Name: "daemon-kill", Light: "#D81B60", Dark: "#F06292", shade: true},
	workload.KubeletRestart: {Name: "kubelet-restart", Light: "#7E57C2", Dark: "#B39DDB", shade: true},
	workload.DiskFull:       {Name: "disk-full", Light: "#C49000", Dark: "#FFD54F", shade: true},
	workload.NoInodes:       {Name: "no-inodes", Light: "#558B2F", Dark: "#9CCC65", shade: true},
	workload.SlowDisk:       {Name: "slow-disk", Light: "#00897B", Dark: "#4DB6AC", shade: true},
	workload.MachineSlow:    {Name: "machine-slow", Light: "#455A64", Dark: "#90A4AE", shade: true},
	workload.OpenFiles:      {Name: "open-files", Light: "#9E9D24", Dark: "#DCE775", shade: true},
	workload.ClockStep:      {Name: "clock-step", Light: "#6D4C41", Dark: "#BCAAA4", shade: true},
}

// colorOf is the colour of a kind of fault.
func colorOf(kind workload.FaultKind) themeColor {
	if i, ok := faultColors[kind]; ok {
		return i
	}
	return other
}

// themeColors are all of them, in the order of their names.
func themeColors() []themeColor {
	list := []themeColor{blue, orange, red, rule, grey, other}
	for _, i := range faultColors {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b themeColor) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// color is what a chart is drawn with.
func (i themeColor) color() color.RGBA {
	c := color.RGBA{A: 0xff}
	if _, err := fmt.Sscanf(string(i.Light), "#%02X%02X%02X", &c.R, &c.G, &c.B); err != nil {
		panic(fmt.Sprintf("color %s has no value: %v", i.Name, err))
	}
	return c
}

// Var refers to the color by its name, in the page's style.
func (i themeColor) Var() template.CSS { return template.CSS("var(--" + i.Name + ")") }

// named turns the colours of a drawing into references.
var named = func() *strings.Replacer {
	var pairs []string
	for _, i := range themeColors() {
		fill := "fill:" + string(i.Var())
		if i.shade {
			fill += ";fill-opacity:var(--shade)"
		}
		pairs = append(pairs, "fill:"+string(i.Light), fill, "stroke:"+string(i.Light), "stroke:"+string(i.Var()))
	}
	return strings.NewReplacer(pairs...)
}()
