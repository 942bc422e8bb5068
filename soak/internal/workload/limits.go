package workload

import "time"

// What pods ask for: each is legal, and more than any volume needs, so that a file system
// that enforces it makes no difference.
var (
	sizeLimits  = []string{"1Gi", "1.5G", "2e9", "3000M"}
	inodeLimits = []string{"100k", "1M", "65536"}
	lifespans   = []string{"90s", "1h30m", "36h", ".5s"}
)

// limit decides which limits and which lifespan a volume asks for.
func (p Plan) limit(v *Volume, pod, volume int) {
	r := p.stream("limits", uint64(pod), uint64(volume))
	asks := chance(r, p.workload.Volumes.Limits)
	draw := func(of []string) string { return of[between(r, 0, int64(len(of))-1)] }
	size, inodes, lifespan := draw(sizeLimits), draw(inodeLimits), draw(lifespans)
	if !asks {
		return
	}
	v.Attributes = map[string]string{"sizeLimit": size, "inodeLimit": inodes}
	// Some ask for the room alone.
	if chance(r, 0.5) {
		v.Attributes["lifespan"], v.Lifespan = lifespan, time.Duration(p.workload.Driver.MaxLifespan)
	}
}
