package files

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// limited returns limited access to a fresh directory of the real file system.
func limited(t *testing.T) (*RateLimitedFs, *ratelimittest.Clock) {
	t.Helper()
	clock := ratelimittest.NewClock(time.Now())
	dir := afero.NewBasePathFs(afero.NewOsFs(), t.TempDir())
	return NewRateLimitedFs(dir, ratelimit.New(ratelimit.WithClock(clock))), clock
}

func TestCreateAdmitsTheBurstThenOneEveryTenSeconds(t *testing.T) {
	t.Parallel()
	fs, clock := limited(t)
	create := func(name string) error {
		f, err := fs.Create(name)
		if err != nil {
			return err
		}
		return f.Close()
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := create(name); err != nil {
			t.Fatal(err)
		}
	}
	err := create("d")
	var refused *ratelimit.Error
	if !errors.As(err, &refused) || !errors.Is(err, ratelimit.ErrLimited) {
		t.Fatalf("fourth create: %v, want a refusal", err)
	}
	if got := refused.Decision.RetryAfter; got != 10*time.Second {
		t.Errorf("retry after %v, want 10s", got)
	}
	if exists, err := afero.Exists(fs, "d"); err != nil || exists {
		t.Errorf("the refused file exists: %v, %v", exists, err)
	}
	clock.Advance(10 * time.Second)
	if err := create("d"); err != nil {
		t.Errorf("after waiting: %v", err)
	}
}

func TestRenameCountsEachFile(t *testing.T) {
	t.Parallel()
	fs, _ := limited(t)
	for _, name := range []string{"a", "b"} {
		if err := afero.WriteFile(fs, name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := fs.Rename("a", "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.Rename("a", "c"); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("third rename of a: %v, want a refusal", err)
	}
	if err := fs.Rename("b", "c"); err != nil {
		t.Errorf("first rename of b: %v", err)
	}
	if err := fs.Rename("", "c"); !errors.Is(err, ratelimit.ErrNoKey) {
		t.Errorf("rename without a name: %v, want ErrNoKey", err)
	}
}

func TestOpenFileTakesFromBothLimitsOrNeither(t *testing.T) {
	t.Parallel()
	fs, _ := limited(t)
	open := func(name string, flag int) error {
		f, err := fs.OpenFile(name, flag, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	}
	for _, name := range []string{"a", "b", "c", "d"} { // 4 writes take 20 units
		if err := open(name, os.O_RDWR|os.O_CREATE); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // refused by the second limit, so nothing is taken from the first
		if err := open("a", os.O_RDONLY); !errors.Is(err, ratelimit.ErrLimited) {
			t.Fatalf("read beyond the limit of all files: %v", err)
		}
	}
	var refused *ratelimit.Error
	if err := open("a", os.O_RDONLY); !errors.As(err, &refused) || refused.Decision.Remaining != 0 ||
		refused.Directive != "max=20 window=1m algorithm=fixed-window cost=`flag == readOnly ? 1 : 5`" {
		t.Errorf("refused by %+v, want the limit of all files", refused)
	}
}

func TestOtherMethodsAreNotLimited(t *testing.T) {
	t.Parallel()
	fs, _ := limited(t)
	for range 100 {
		if err := fs.MkdirAll("x/y", 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat("x/y"); err != nil {
			t.Fatal(err)
		}
	}
}
