// An application of franz-go's: transactions, sessions of a group, an idempotent producer over a bad network, and the
// admin client. With arguments only the scenarios they name.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	wait     = 30 * time.Second
	scenario = 90 * time.Second
)

var (
	run   = fmt.Sprintf("%08x", rand.Uint32())
	seeds = kgo.SeedBrokers(os.Getenv("BOOTSTRAP"))
)

var scenarios = []struct {
	name string
	play func(*app) string
}{
	{"commit", commit},
	{"abort", abort},
	{"offsets", offsets},
	{"rebalance", rebalance},
	{"isolation", isolation},
	{"fencing", fencing},
	{"timeout", timeout},
	{"idempotence", idempotence},
	{"transactions", transactions},
	{"markers", markers},
	{"admin", admin},
}

// app is what a scenario works with. What goes wrong ends the scenario by a panic with a failure.
type app struct {
	context.Context
	name   string
	adm    *kadm.Client
	closed []func()
}

type failure string

func (a *app) ok(err error) {
	if err != nil {
		panic(failure(err.Error()))
	}
}

func (a *app) equal(what string, seen, wanted any) {
	if !reflect.DeepEqual(seen, wanted) {
		panic(failure(fmt.Sprintf("%s: %.300s instead of %.300s", what, fmt.Sprint(seen), fmt.Sprint(wanted))))
	}
}

func (a *app) refused(what string, err error, wanted ...error) {
	if !slices.ContainsFunc(wanted, func(one error) bool { return errors.Is(err, one) }) {
		panic(failure(fmt.Sprintf("%s: %v instead of %v", what, err, wanted)))
	}
}

// eventually looks until it sees what it should: Kafka's controller answers before all of the broker knows.
func (a *app) eventually(what string, look func() any, wanted any) {
	until := time.Now().Add(wait)
	for seen := look(); !reflect.DeepEqual(seen, wanted); seen = look() {
		if time.Now().After(until) {
			a.equal(what, seen, wanted)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (a *app) client(opts ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append([]kgo.Opt{seeds, kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	a.ok(err)
	a.closed = append(a.closed, client.Close)
	return client
}

func (a *app) id(suffix string) string {
	return fmt.Sprintf("franz-go-%s-%s%s", run, a.name, suffix)
}

func (a *app) transactional(suffix string, opts ...kgo.Opt) *kgo.Client {
	return a.client(append([]kgo.Opt{kgo.TransactionalID(a.id(suffix))}, opts...)...)
}

func (a *app) topic(suffix string, partitions int32, config map[string]*string) string {
	topic := a.id(suffix)
	_, err := a.adm.CreateTopic(a, partitions, 1, config, topic)
	a.ok(err)
	a.eventually("partitions", func() any { return a.partitions(topic) }, int(partitions))
	return topic
}

func (a *app) partitions(topic string) int {
	found, err := a.adm.ListTopics(a, topic)
	a.ok(err)
	return len(found[topic].Partitions)
}

// write returns when every record is in the log.
func (a *app) write(client *kgo.Client, topic string, partition int32, values ...string) {
	var records []*kgo.Record
	for _, value := range values {
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)})
	}
	a.ok(client.ProduceSync(a, records...).FirstErr())
}

// end ends a transaction whose records are all written.
func (a *app) end(client *kgo.Client, how kgo.TransactionEndTry) {
	a.ok(client.Flush(a))
	a.ok(client.EndTransaction(a, how))
}

func (a *app) lastOffset(topic string, committed bool) int64 {
	list := a.adm.ListEndOffsets
	if committed {
		list = a.adm.ListCommittedOffsets
	}
	found, err := list(a, topic)
	a.ok(err)
	a.ok(found.Error())
	last, _ := found.Lookup(topic, 0)
	return last.Offset
}

// read gives everything that a reader sees now. Where it ends the last is a marker or a record it sees, so it knows.
func (a *app) read(topic string, level kgo.IsolationLevel) map[int32][]string {
	list := a.adm.ListEndOffsets
	if level == kgo.ReadCommitted() {
		list = a.adm.ListCommittedOffsets
	}
	ends, err := list(a, topic)
	a.ok(err)
	missing, starts := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		starts[end.Partition] = kgo.NewOffset().AtStart()
		if end.Offset > 0 {
			missing[end.Partition] = end.Offset
		}
	})
	client := a.client(kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	defer client.Close()
	seen := map[int32][]string{}
	for len(missing) > 0 {
		fetches := client.PollFetches(a)
		a.ok(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			if !record.Attrs.IsControl() {
				seen[record.Partition] = append(seen[record.Partition], string(record.Value))
			}
			if record.Offset >= missing[record.Partition]-1 {
				delete(missing, record.Partition)
			}
		})
	}
	return seen
}

func (a *app) committed(topic string) []string {
	return a.read(topic, kgo.ReadCommitted())[0]
}

func (a *app) all(topic string) []string {
	return a.read(topic, kgo.ReadUncommitted())[0]
}

func play(name string, scene func(*app) string) (verdict string) {
	ctx, cancel := context.WithTimeout(context.Background(), scenario)
	defer cancel()
	a := &app{Context: ctx, name: name}
	defer func() {
		slices.Reverse(a.closed)
		for _, shut := range a.closed {
			shut()
		}
		switch wrong := recover().(type) {
		case nil:
		case failure:
			verdict = "FAIL " + name + " " + strings.Join(strings.Fields(string(wrong)), " ")
		default:
			panic(wrong)
		}
	}()
	a.adm = kadm.NewClient(a.client())
	return strings.TrimSpace("pass " + name + " " + scene(a))
}

func version(path string) string {
	built, _ := debug.ReadBuildInfo()
	for _, module := range built.Deps {
		if module.Path == path {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func main() {
	fmt.Println("version franz-go", version("github.com/twmb/franz-go"), "kadm", version("github.com/twmb/franz-go/pkg/kadm"))
	for _, scene := range scenarios {
		if len(os.Args) == 1 || slices.Contains(os.Args[1:], scene.name) {
			fmt.Println(play(scene.name, scene.play))
		}
	}
	fmt.Println("end")
}
