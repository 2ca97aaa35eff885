package main

import "testing"

func TestCountsWhatClientsSend(t *testing.T) {
	t.Parallel()
	const stats = "# Commandstats\r\n" +
		"cmdstat_evalsha:calls=2000,usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_time:calls=2000,usec=1\r\n" +
		"cmdstat_get:calls=2000,usec=1\r\n" +
		"cmdstat_client|setinfo:calls=2,usec=1\r\n" +
		"cmdstat_config|resetstat:calls=1,usec=1\r\n" +
		"cmdstat_info:calls=1,usec=1\r\n"
	sent, inside := count(stats)
	if sent != 2002 || inside != "get time" {
		t.Errorf("%d commands sent and %q inside, want 2002 and \"get time\"", sent, inside)
	}
}
