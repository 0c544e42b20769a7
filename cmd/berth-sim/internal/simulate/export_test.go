package simulate

// WithEverybody is the configuration with passes over all who wait, whether or not anything could come of it.
func (c Config) WithEverybody() Config {
	c.everybody = true
	return c
}
