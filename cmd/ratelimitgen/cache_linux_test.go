package main

import "testing"

// What the user's directories are may not be known either.
func TestACacheOfTheUserThatIsRelativeIsNotUsed(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "here")
	if got, err := cacheDir(""); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
