package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// These take their time, and several servers each.
func TestFailoverRD21(t *testing.T) {
	if !longFaults() {
		t.Skip("set " + faultsEnv + " for the failover of clusters and sentinels; `make test-faults` does")
	}
	r := &faults
	for name, newClient := range map[string]func(addrs ...string) redis.UniversalClient{"go-redis's defaults": plain, "NewClient": tuned} {
		t.Run("cluster, "+name, func(t *testing.T) { clusterFailover(t, r, "cluster master killed, "+name, newClient) })
		t.Run("resharding, "+name, func(t *testing.T) { resharding(t, r, "slot moved, "+name, newClient) })
	}
	for name, newClient := range map[string]func(o *redis.UniversalOptions) redis.UniversalClient{"go-redis's defaults": redis.NewUniversalClient, "NewClient": redisstore.NewClient} {
		t.Run("sentinel, "+name, func(t *testing.T) { sentinelFailover(t, r, "sentinel's master killed, "+name, newClient) })
	}
}

// keyOn returns a key that a node of the cluster has, or that it does not have.
func keyOn(t *testing.T, cluster *redis.ClusterClient, addr string, has bool) string {
	t.Helper()
	store := redisstore.New(cluster)
	p := trafficPolicy()
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		node, err := cluster.MasterForKey(context.Background(), store.KeyOf(&p, key))
		if err != nil {
			t.Fatal(err)
		}
		if (node.Options().Addr == addr) == has {
			return key
		}
	}
}

// replicate makes a server the replica of another, by the command and its arguments,
// and waits until it follows.
func replicate(t *testing.T, replica *redis.Client, command ...any) {
	t.Helper()
	ctx := context.Background()
	until(t, 20*time.Second, func() bool { return replica.Do(ctx, command...).Err() == nil })
	until(t, 20*time.Second, func() bool {
		info, err := replica.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
}

func clusterFailover(t *testing.T, r *report, name string, newClient func(addrs ...string) redis.UniversalClient) {
	ctx := context.Background()
	args := []string{"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no"}
	servers, nodes, cluster := startNodes(t, args...)
	master, other := servers[0].addr, servers[1].addr
	host, port, _ := net.SplitHostPort(master)
	for i := range servers { // six nodes
		replica := connect(t, startServer(t, append([]string{"--cluster-enabled", "yes"}, args...)...).addr)
		if err := replica.ClusterMeet(ctx, host, port).Err(); err != nil {
			t.Fatal(err)
		}
		id, err := nodes[i].Do(ctx, "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		replicate(t, replica, "cluster", "replicate", id)
	}
	for _, node := range nodes {
		awaitCluster(t, node, 6)
	}

	client := newClient(servers[0].addr, servers[1].addr, servers[2].addr)
	t.Cleanup(func() { client.Close() })
	here := startTraffic(client, keyOn(t, cluster, master, true), 4)
	there := startTrafficOn(here.store, keyOn(t, cluster, other, true), 4)
	until(t, 10*time.Second, func() bool { return here.answered() > 100 && there.answered() > 100 })
	servers[0].kill()
	here.heal(time.Now())
	until(t, 20*time.Second, here.isBack)
	here.end()
	there.end()

	charged := spent(t, redisstore.New(client), here.key)
	r.add(name, here, fmt.Sprintf("%d of %d lost", int64(here.answers)-charged, here.answers))
	r.add(name+", other slots", there, "")
	check(t, here, 6*time.Second)
	check(t, there, 0)
	if n := len(there.took) - there.answers; n > len(there.took)/50 {
		t.Errorf("%d of %d decisions on another node were degraded", n, len(there.took))
	}
}

func resharding(t *testing.T, r *report, name string, newClient func(addrs ...string) redis.UniversalClient) {
	ctx := context.Background()
	servers, nodes, cluster := startNodes(t)
	client := newClient(servers[0].addr, servers[1].addr, servers[2].addr)
	t.Cleanup(func() { client.Close() })
	f := startTraffic(client, keyOn(t, cluster, servers[0].addr, true), 8)
	p := trafficPolicy()
	key := place(f.store.KeyOf(&p, f.key))
	slot, err := nodes[0].ClusterKeySlot(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	id := func(i int) string {
		id, err := nodes[i].Do(ctx, "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	setSlot := func(i int, args ...any) {
		t.Helper()
		if err := nodes[i].Do(ctx, append([]any{"cluster", "setslot", slot}, args...)...).Err(); err != nil {
			t.Error(err)
		}
	}
	for n := range 10 { // there and back
		from, to := n%2, (n+1)%2
		want := f.answered() + 100
		until(t, 10*time.Second, func() bool { return f.answered() > want })
		setSlot(to, "importing", id(from))
		setSlot(from, "migrating", id(to))
		want = f.answered() + 20
		until(t, 10*time.Second, func() bool { return f.answered() > want })
		host, port, _ := net.SplitHostPort(servers[to].addr)
		if err := nodes[from].Migrate(ctx, host, port, key, 0, 5*time.Second).Err(); err != nil {
			t.Error(err)
		}
		want = f.answered() + 20
		until(t, 10*time.Second, func() bool { return f.answered() > want })
		setSlot(to, "node", id(to))
		setSlot(from, "node", id(to))
	}
	f.end()
	r.add(name, f, "")
	check(t, f, 0)
	charged := spent(t, redisstore.New(client), f.key)
	stats := f.store.Stats()
	if most := int64(f.answers) + stats.Failures[redisstore.Timeout] + stats.Failures[redisstore.Unreachable]; charged < int64(f.answers) || charged > most {
		t.Errorf("%d answers and %d calls at most were charged as %d", f.answers, most, charged)
	}
}

func sentinelFailover(t *testing.T, r *report, name string, newClient func(o *redis.UniversalOptions) redis.UniversalClient) {
	const downAfter = time.Second
	master, follower := startServer(t), startServer(t)
	host, port, _ := net.SplitHostPort(master.addr)
	replicate(t, connect(t, follower.addr), "replicaof", host, port)
	var sentinels []string
	for range 3 {
		sentinels = append(sentinels, startSentinel(t, fmt.Sprintf(`sentinel monitor limits %s %s 2
sentinel down-after-milliseconds limits %d
sentinel failover-timeout limits 3000
`, host, port, downAfter.Milliseconds())))
	}
	for _, addr := range sentinels { // they find each other, and the replica
		c := redis.NewSentinelClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { c.Close() })
		until(t, 20*time.Second, func() bool {
			state, err := c.Master(context.Background(), "limits").Result()
			return err == nil && state["num-other-sentinels"] == "2" && state["num-slaves"] == "1"
		})
	}

	client := newClient(&redis.UniversalOptions{MasterName: "limits", Addrs: sentinels})
	t.Cleanup(func() { client.Close() })
	f := startTraffic(client, "k", 8)
	until(t, 10*time.Second, func() bool { return f.answered() > 100 })
	master.kill()
	f.heal(time.Now())
	until(t, 30*time.Second, f.isBack)
	f.end()
	charged := spent(t, redisstore.New(client), f.key)
	r.add(name, f, fmt.Sprintf("%d of %d lost", int64(f.answers)-charged, f.answers))
	check(t, f, downAfter+3*time.Second)
}

// startSentinel runs a sentinel with a configuration.
func startSentinel(t *testing.T, config string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\n%s", port, dir, config)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := connect(t, addr)
	until(t, 20*time.Second, func() bool { return c.Ping(context.Background()).Err() == nil })
	return addr
}
