package lifespan

// ShareFactor returns the pressure factor of a pool by its free share: 1 with as much free as alert says, 0 at
// emergency, and linear between. The two are shares of the size, emergency the smaller one.
func ShareFactor(free, alert, emergency float64) float64 {
	switch {
	case free >= alert:
		return 1
	case free <= emergency:
		return 0
	default:
		return (free - emergency) / (alert - emergency)
	}
}
