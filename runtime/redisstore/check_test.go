package redisstore_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// found returns the findings of a report as text.
func found(r redisstore.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

func TestCheckFindsNothingAmissOnAFreshServer(t *testing.T) {
	t.Parallel()
	client := connect(t, startServer(t).addr)
	report, err := redisstore.New(client).Check(context.Background())
	if err != nil || len(report.Findings) > 0 || len(report.Servers) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if s := report.Servers[0]; s.Server != client.Options().Addr || s.Version == "" || s.Role != "master" || s.Eviction != "noeviction" || s.Cluster || s.Ahead.Abs() > time.Second {
		t.Errorf("%+v", s)
	}
	if keys, err := client.Keys(context.Background(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left %q, %v", keys, err)
	}
}

func TestCheckNamesEvictionOfCounters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	if err := client.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	if report, err := store.Check(ctx); err != nil || len(report.Findings) > 0 {
		t.Errorf("without a bound of memory nothing is evicted: %s, %v", found(report), err)
	}
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		if err := client.ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.ConfigSet(ctx, "maxmemory", "100mb").Err(); err != nil {
			t.Fatal(err)
		}
		report, err := store.Check(ctx)
		want := client.Options().Addr + ": warning: maxmemory-policy " + policy + " removes counters when 104857600 bytes are in use"
		if err != nil || len(report.Findings) != 1 || !strings.HasPrefix(found(report), want) {
			t.Errorf("%s, %v", found(report), err)
		}
	}
	if err := client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if report, err := store.Check(ctx); err != nil || len(report.Findings) > 0 {
		t.Errorf("%s, %v", found(report), err)
	}
}

// A server that refuses to write decides nothing but what is refused already.
func TestCheckNamesWhatKeepsAServerFromWriting(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"full":            {[]string{"--maxmemory", "1"}, "OOM command not allowed"},
		"without replica": {[]string{"--min-replicas-to-write", "1"}, "NOREPLICAS "},
		"replica":         {[]string{"--replicaof", "127.0.0.1", "1"}, "it is a replica of 127.0.0.1:1"},
		"unsaved":         {nil, "MISCONF "},
	} {
		s := startServer(t, c.args...)
		client := connect(t, s.addr)
		if c.args == nil {
			s.breakSaving(t, client)
		}
		report, err := redisstore.New(client).Check(ctx)
		if err == nil || len(report.Findings) != 1 || !strings.Contains(found(report), s.addr+": problem: "+c.want) {
			t.Errorf("%s: %s, error %v, want %s", name, found(report), err, c.want)
		}
	}
	// A user who may not ask for the role.
	s := startServer(t, "--replicaof", "127.0.0.1", "1")
	if err := connect(t, s.addr).Do(ctx, "acl", "setuser", "u", "on", ">p", "~*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, Username: "u", Password: "p"})
	t.Cleanup(func() { client.Close() })
	if report, err := redisstore.New(client).Check(ctx); err == nil || !strings.Contains(err.Error(), "READONLY ") {
		t.Errorf("%s, error %v", found(report), err)
	}
	// Each node of a cluster is asked for a key that it has.
	servers, nodes, cluster := startNodes(t)
	for i, node := range nodes {
		if err := node.ConfigSet(ctx, "min-replicas-to-write", "1").Err(); err != nil {
			t.Fatal(err)
		}
		report, err := redisstore.New(cluster).Check(ctx)
		if err == nil || len(report.Findings) != 1 || !strings.Contains(found(report), servers[i].addr+": problem: NOREPLICAS") {
			t.Errorf("node %d: %s, error %v", i, found(report), err)
		}
		if err := node.ConfigSet(ctx, "min-replicas-to-write", "0").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// breakSaving has the server fail to save, after which it refuses to write.
func (s *server) breakSaving(t testing.TB, client *redis.Client) {
	t.Helper()
	ctx := context.Background()
	// In the place of the file to save there is a directory that is not empty.
	if err := os.MkdirAll(filepath.Join(s.dir, "dump.rdb", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := client.ConfigSet(ctx, "save", "3600 1000000").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.BgSave(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, 10*time.Second, func() bool {
		info, err := client.Info(ctx, "persistence").Result()
		return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
	})
}

func TestCheckNamesTheRightThatIsMissing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	admin := connect(t, s.addr)
	slower := map[string][]string{"slow": {"setrange", "pttl"}, "nomget": {"mget"}}
	type rights struct {
		rules    []any
		problems []string
		warnings int
	}
	all := map[string]rights{
		"enough":  {[]any{"~ratelimit:*", "+evalsha", "+eval", "+get", "+pttl", "+set", "+setrange", "+time", "+del", "+info"}, nil, 0},
		"noinfo":  {[]any{"~ratelimit:*", "+evalsha", "+eval", "+get", "+pttl", "+set", "+setrange", "+time", "+del"}, nil, 1},
		"noeval":  {[]any{"~ratelimit:*", "+evalsha", "+get", "+pttl", "+set", "+setrange", "+time", "+del", "+info"}, []string{"ACL SETUSER noeval +eval ~ratelimit:*"}, 0},
		"nodel":   {[]any{"~ratelimit:*", "+evalsha", "+eval", "+get", "+pttl", "+set", "+setrange", "+time", "+info"}, []string{"+del ~"}, 0},
		"notime":  {[]any{"~ratelimit:*", "+evalsha", "+eval", "+get", "+pttl", "+set", "+setrange", "+del", "+info"}, []string{"+time ~"}, 0},
		"nosets":  {[]any{"~ratelimit:*", "+@all", "-set", "-evalsha"}, []string{"+set ~", "+evalsha ~"}, 0},
		"nomget":  {[]any{"~ratelimit:*", "+@all", "-mget"}, nil, 1},
		"slow":    {[]any{"~ratelimit:*", "+evalsha", "+eval", "+get", "+set", "+time", "+del", "+info"}, nil, 2},
		"nokeys":  {[]any{"~other:*", "+@all"}, []string{"+set ~", "+get ~", "+eval ~", "+evalsha ~", "+del ~"}, 2},
		"nothing": {[]any{"~*", "+ping"}, []string{"+time ~", "+set ~", "+get ~", "+eval ~", "+evalsha ~", "+del ~"}, 3},
	}
	if redisstore.InHashes() {
		commands := []string{"time", "eval", "evalsha", "hget", "hmget", "hset", "hdel", "pttl", "pexpire"}
		enough := []any{"~ratelimit:*", "+info"}
		for _, name := range commands {
			enough = append(enough, "+"+name)
		}
		all = map[string]rights{"enough": {enough, nil, 0}}
		// What nobody could remove is not written.
		all["noend"] = rights{append(slices.Clone(enough), "-pexpire", "-hdel", "-hset"), []string{"+pexpire ~", "+hdel ~"}, 0}
		for _, name := range commands {
			all["no"+name] = rights{append(slices.Clone(enough), "-"+name), []string{"ACL SETUSER no" + name + " +" + name + " ~ratelimit:*"}, 0}
		}
	}
	for name, c := range all {
		if err := admin.Do(ctx, append([]any{"acl", "setuser", name, "on", ">secret", "resetkeys"}, c.rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: s.addr, Username: name, Password: "secret"})
		t.Cleanup(func() { client.Close() })
		var opts []redisstore.Option
		if name == "nomget" {
			opts = append(opts, redisstore.WithPipelines(2)) // which use it
		}
		report, err := redisstore.New(client, opts...).Check(ctx)
		if (err != nil) != (len(c.problems) > 0) || len(report.Findings) != len(c.problems)+c.warnings {
			t.Errorf("%s: %s, error %v", name, found(report), err)
		}
		for _, right := range slower[name] {
			if text := found(report); !strings.Contains(text, "warning: ") || !strings.Contains(text, "ACL SETUSER "+name+" +"+right+" ~") {
				t.Errorf("%s: %s, want a warning of %s", name, text, right)
			}
		}
		for _, key := range admin.Keys(ctx, "*").Val() {
			if ttl := admin.PTTL(ctx, key).Val(); ttl == -1 || ttl > time.Second {
				t.Errorf("%s: %s lives for %v", name, key, ttl)
			}
		}
		for _, p := range c.problems {
			if err == nil || !strings.Contains(err.Error(), p) || !strings.Contains(err.Error(), s.addr+": problem: ") {
				t.Errorf("%s: error %v, want %s", name, err, p)
			}
		}
	}
}

func TestCheckNamesAReplicaAndAWrongPassword(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	master := startServer(t)
	host, port, _ := net.SplitHostPort(master.addr)
	replica := startServer(t, "--replicaof", host, port)
	report, err := redisstore.New(connect(t, replica.addr)).Check(ctx)
	want := replica.addr + ": problem: it is a replica of " + master.addr + "; connect to that"
	if err == nil || !strings.HasPrefix(err.Error(), want) || report.Servers[0].Role != "replica" {
		t.Errorf("%v, want %s", err, want)
	}

	locked := startServer(t, "--requirepass", "secret")
	_, err = redisstore.New(connect(t, locked.addr)).Check(ctx)
	if err == nil || !strings.Contains(err.Error(), "NOAUTH") || !strings.Contains(err.Error(), "set Username and Password") {
		t.Errorf("without a password: %v", err)
	}

	gone := startServer(t)
	gone.kill()
	_, err = redisstore.New(connect(t, gone.addr)).Check(ctx)
	if err == nil || !strings.Contains(err.Error(), gone.addr+": problem: ") || !strings.Contains(err.Error(), "start it, or correct the address") {
		t.Errorf("without a server: %v", err)
	}
}

func TestCheckNamesANodeOfACluster(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--cluster-enabled", "yes")
	report, err := redisstore.New(connect(t, s.addr)).Check(context.Background())
	if err == nil || !strings.Contains(err.Error(), "it is a node of a cluster, and the client knows only this one; use redis.NewClusterClient") || !report.Servers[0].Cluster {
		t.Errorf("%v", err)
	}
}

func TestCheckLooksAtAllServersOfARing(t *testing.T) {
	t.Parallel()
	one, two := startServer(t), startServer(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": one.addr, "two": two.addr}})
	t.Cleanup(func() { ring.Close() })
	report, err := redisstore.New(ring).Check(context.Background())
	if err != nil || len(report.Servers) != 2 || len(report.Findings) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckLooksAtAllMastersOfACluster(t *testing.T) {
	t.Parallel()
	nodes, cluster := startCluster(t)
	if err := nodes[1].Do(context.Background(), "acl", "setuser", "default", "-eval").Err(); err != nil {
		t.Fatal(err)
	}
	report, err := redisstore.New(cluster).Check(context.Background())
	if err == nil || len(report.Servers) != len(nodes) || len(report.Findings) != 1 || report.Findings[0].Server != nodes[1].Options().Addr || !report.Servers[0].Cluster {
		t.Errorf("%+v, %v", report, err)
	}
	if err := nodes[1].Do(context.Background(), "acl", "setuser", "default", "+eval").Err(); err != nil {
		t.Fatal(err)
	}
	if report, err := redisstore.New(cluster).Check(context.Background()); err != nil {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckComparesTheClocks(t *testing.T) {
	t.Parallel()
	client, prefix := sharedClient(t)
	store := redisstore.New(client, redisstore.WithPrefix(prefix))
	for ours, want := range map[time.Duration]string{
		-time.Hour:             `its clock is (59m59\.9|1h0m0).* ahead of that of this machine`,
		time.Hour:              `its clock is (59m59\.9|1h0m0).* behind that of this machine`,
		100 * time.Millisecond: "",
	} {
		report, err := store.CheckAt(context.Background(), ours)
		if err != nil || (want == "") != (len(report.Findings) == 0) || !regexp.MustCompile(want).MatchString(found(report)) {
			t.Errorf("our clock %v off: %s, %v", ours, found(report), err)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{
		"6.0.16": true, "5": true, "2.8.24": true, "6.2.0": false, "6.2": false, "7.0.15": false, "10.1.2": false, "": false, "unstable": false, "255.255.255": false,
	} {
		if redisstore.IsOld(version) != old {
			t.Errorf("%q: old is %v", version, !old)
		}
	}
}
