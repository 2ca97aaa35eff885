package main

import "testing"

func TestOnlyWhatClientsSentIsCounted(t *testing.T) {
	t.Parallel()
	const header = "# Commandstats\r\n"
	for _, c := range []struct {
		stats            string
		micros, commands float64
	}{
		{header, 0, 0},
		{header + "cmdstat_ping:calls=7,usec=3,usec_per_call=0.43\r\ncmdstat_info:calls=1,usec=99\r\ncmdstat_config|resetstat:calls=1,usec=9\r\n", 3, 7},
		{header + "cmdstat_get:calls=5,usec=4\r\ncmdstat_eval:calls=1,usec=50\r\ncmdstat_evalsha:calls=4,usec=40\r\ncmdstat_set:calls=5,usec=4\r\n", 90, 5},
		// What is not run by a script counts where there is none.
		{header + "cmdstat_get:calls=5,usec=4\r\ncmdstat_time:calls=5,usec=1\r\n", 5, 10},
	} {
		if micros, commands := sent(c.stats); micros != c.micros || commands != c.commands {
			t.Errorf("%q: %g µs, %g commands, want %g, %g", c.stats, micros, commands, c.micros, c.commands)
		}
	}
}

func TestRatiosAreOfTheSameRound(t *testing.T) {
	t.Parallel()
	if got := ratio([]float64{1, 20, 300}, []float64{10, 100, 1000}); got != 0.2 {
		t.Errorf("the median of 0.1, 0.2 and 0.3 is %g", got)
	}
}
