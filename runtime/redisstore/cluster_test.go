package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// ownSlots makes the server of client the owner of slots, and waits until it
// deems its cluster fit for use.
func ownSlots(t testing.TB, client *redis.Client, from, to int) {
	t.Helper()
	if err := client.ClusterAddSlotsRange(context.Background(), from, to).Err(); err != nil {
		t.Fatal(err)
	}
	if from == 0 && to == 16383 {
		awaitCluster(t, client, 1)
	}
}

// awaitCluster waits until the server of client knows all slots and nodes.
func awaitCluster(t testing.TB, client *redis.Client, nodes int) {
	t.Helper()
	ready := fmt.Sprintf("cluster_known_nodes:%d\r\n", nodes)
	var info string
	for tick, deadline := time.NewTicker(20*time.Millisecond), time.Now().Add(20*time.Second); time.Now().Before(deadline); <-tick.C {
		var err error
		if info, err = client.ClusterInfo(context.Background()).Result(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, ready) {
			return
		}
	}
	t.Fatalf("the cluster does not form:\n%s", info)
}

// startCluster runs three masters, and returns a client of each and of all.
func startCluster(t testing.TB) (nodes []*redis.Client, cluster *redis.ClusterClient) {
	t.Helper()
	_, nodes, cluster = startNodes(t)
	return nodes, cluster
}

// startNodes is startCluster, and returns the servers too.
func startNodes(t testing.TB, args ...string) (servers []*server, nodes []*redis.Client, cluster *redis.ClusterClient) {
	t.Helper()
	ctx := context.Background()
	var addrs []string
	for i := range 3 {
		s := startServer(t, append([]string{"--cluster-enabled", "yes"}, args...)...)
		servers = append(servers, s)
		addrs = append(addrs, s.addr)
		node := connect(t, s.addr)
		nodes = append(nodes, node)
		if err := node.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			t.Fatal(err)
		}
		ownSlots(t, node, i*5462, min((i+1)*5462-1, 16383))
		host, port, _ := net.SplitHostPort(addrs[0])
		if err := node.ClusterMeet(ctx, host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range nodes {
		awaitCluster(t, node, 3)
	}
	cluster = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { cluster.Close() })
	return servers, nodes, cluster
}

func TestRD08Cluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	nodes, cluster := startCluster(t)
	store := redisstore.New(cluster)
	counts := func() (keys int64) {
		t.Helper()
		for _, node := range nodes {
			n, err := node.DBSize(ctx).Result()
			if err != nil {
				t.Fatal(err)
			}
			keys += n
		}
		return keys
	}
	together := func(keys ...string) []ratelimit.Op {
		var ops []ratelimit.Op
		for i, p := range policies() {
			ops = append(ops, ratelimit.Op{Policy: p, Key: keys[i%len(keys)], Cost: 1})
		}
		return ops
	}

	// RD08: policies of one key, on every node.
	used := map[string]bool{}
	for i := range 60 {
		key := fmt.Sprint("key}{", i)
		for left := int64(4); left >= -1; left-- {
			ops := together(key)
			if err := store.Take(ctx, ops); err != nil {
				t.Fatal(err)
			}
			for _, op := range ops {
				if op.Outcome.Allowed != (left >= 0) || op.Outcome.Remaining != max(left, 0) {
					t.Fatalf("%s: %+v with %d left", op.Policy.ID, op.Outcome, left)
				}
			}
		}
		node, err := cluster.MasterForKey(ctx, store.KeyOf(policies()[0], key))
		if err != nil {
			t.Fatal(err)
		}
		used[node.Options().Addr] = true
	}
	keys := keysOf(60, 3)
	if len(used) != 3 || counts() != keys {
		t.Errorf("%d keys on the nodes %v, want %d on 3", counts(), used, keys)
	}

	// RD08: policies of different keys; nothing is charged if one of them refuses.
	for i := range 20 {
		ops := together(fmt.Sprint("other", i), "key}{1")
		if err := store.Take(ctx, ops); err != nil {
			t.Errorf("different keys: error %v", err)
		}
		for j, op := range ops {
			if used := j == 1; op.Outcome.Allowed == used || op.Outcome.Remaining != map[bool]int64{true: 0, false: 5}[used] {
				t.Errorf("%s: %+v after a refusal of the second", op.Policy.ID, op.Outcome)
			}
		}
	}
	if n := counts(); n != keys {
		t.Errorf("%d keys after refusals, want %d", n, keys)
	}
	limits := redisstore.New(cluster, redisstore.WithPrefix("{limits}:"))
	if err := limits.Take(ctx, together("a", "b", "c")); err != nil {
		t.Errorf("different keys under one tag: %v", err)
	}

	if err := store.Reset(ctx, policies()[0], "key}{1"); err != nil {
		t.Error(err)
	}
	if keys += 3; !redisstore.InHashes() {
		keys--
	}
	if n := counts(); n != keys {
		t.Errorf("%d keys after a reset, want %d", n, keys)
	}

	// Places on all nodes are given back at once.
	var places []ratelimit.Op
	var ends []ratelimit.End
	p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 1}
	for i := range 30 {
		places = append(places, ratelimit.Op{Policy: p, Key: fmt.Sprint(i), Cost: 1, ID: 1})
		ends = append(ends, ratelimit.End{Policy: p, Key: fmt.Sprint(i), ID: 1})
	}
	for i, want := range []bool{true, false, true} {
		if i == 2 {
			if err := store.End(ctx, ends); err != nil {
				t.Error(err)
			}
		}
		for j := range places {
			if err := store.Take(ctx, places[j:j+1]); err != nil || places[j].Outcome.Allowed != want {
				t.Errorf("round %d, place %d: %+v, %v", i, j, places[j].Outcome, err)
			}
		}
	}

	moveSlot(t, nodes, cluster, store)
}

// moveSlot moves the slot of a key while a client that does not know uses it.
func moveSlot(t *testing.T, nodes []*redis.Client, cluster *redis.ClusterClient, store *redisstore.Store) {
	t.Helper()
	ctx := context.Background()
	p := &ratelimit.Policy{ID: "moved", Limit: 100, Window: time.Hour}
	key := place(store.KeyOf(p, "k"))
	take := func(want int64) {
		t.Helper()
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		if got := ops[0].Outcome.Remaining; got != want {
			t.Errorf("%d left, want %d", got, want)
		}
	}
	take(99)
	slot, err := nodes[0].ClusterKeySlot(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	master, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	var from, to *redis.Client
	for _, node := range nodes {
		if node.Options().Addr == master.Options().Addr {
			from = node
		} else {
			to = node
		}
	}
	setSlot := func(node *redis.Client, args ...any) {
		t.Helper()
		if err := node.Do(ctx, append([]any{"cluster", "setslot", slot}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	id := func(node *redis.Client) string {
		t.Helper()
		id, err := node.Do(ctx, "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	setSlot(to, "importing", id(from))
	setSlot(from, "migrating", id(to))
	take(98) // the key is still here
	host, port, _ := net.SplitHostPort(to.Options().Addr)
	if err := from.Migrate(ctx, host, port, key, 0, 5*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	take(97) // ASK, and a node that has not seen the script
	take(96)
	setSlot(to, "node", id(to))
	setSlot(from, "node", id(to))
	take(95) // MOVED
	take(94)
	if n, err := from.Exists(ctx, key).Result(); err == nil {
		t.Errorf("the old node still has %d of the key", n)
	}
}

// Of calls that go out together, go-redis keeps that they were moved, and not what became
// of them on the node that they were moved to.
func TestCallsThatWereMovedAndThenLostMayHaveBeenCharged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// One node has all slots, and tells that it is where the proxy is.
	_, port, _ := net.SplitHostPort(l.Addr().String())
	other := startServer(t, "--cluster-enabled", "yes")
	owner := startServer(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", port)
	proxy := startProxy(t, l, owner.addr)
	direct := connect(t, owner.addr)
	ownSlots(t, direct, 0, 16383)
	host, port, _ := net.SplitHostPort(other.addr)
	if err := direct.ClusterMeet(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	awaitCluster(t, connect(t, other.addr), 2)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { // as it was before
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: other.addr}}}}, nil
		},
	})
	t.Cleanup(func() { cluster.Close() })
	store := redisstore.New(cluster, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(1), quiet)
	p := &ratelimit.Policy{ID: "p", Limit: 100, Window: time.Hour}
	ops := make([]ratelimit.Op, 5)
	for i := range ops {
		ops[i] = ratelimit.Op{Policy: p, Key: fmt.Sprint(i), Cost: 1}
	}
	for i, err := range store.TakeTogether(ctx, ops) {
		if err != nil || ops[i].Outcome.Remaining != 99 {
			t.Errorf("moved: %+v, %v", ops[i].Outcome, err)
		}
	}
	proxy.lose("evalsha")
	for _, err := range store.TakeTogether(ctx, ops) {
		if c := redisstore.ClassOf(err); err == nil || c != redisstore.Unreachable {
			t.Errorf("moved, and then lost: class %s of %v", c, err)
		}
	}
	if n := proxy.losses(); n != 1 {
		t.Errorf("%d replies were lost", n)
	}
	for i, err := range store.TakeTogether(ctx, ops) {
		if n := ops[i].Outcome.Remaining; err != nil || n < 97 || n > 98 {
			t.Errorf("after that: %+v, %v", ops[i].Outcome, err)
		}
	}
}

func TestRing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := startServer(t), startServer(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.addr, "b": b.addr}})
	t.Cleanup(func() { ring.Close() })
	store := redisstore.New(ring)
	for i := range 20 {
		var ops []ratelimit.Op
		for _, p := range policies() {
			ops = append(ops, ratelimit.Op{Policy: p, Key: fmt.Sprint(i), Cost: 5})
		}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		ops[0].Key = fmt.Sprint(i + 1)
		if err := store.Take(ctx, ops); err != nil || ops[1].Outcome.Allowed {
			t.Errorf("different keys: %+v, error %v", ops, err)
		}
	}
	var total int64
	for _, s := range []*server{a, b} {
		n, err := connect(t, s.addr).DBSize(ctx).Result()
		if err != nil || n == 0 {
			t.Errorf("%d keys on %s, %v", n, s.addr, err)
		}
		total += n
	}
	if want := keysOf(20, 3); total != want {
		t.Errorf("%d keys, want %d", total, want)
	}
}
