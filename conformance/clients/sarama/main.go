// An application of Sarama's: transactions, a consumer group, an idempotent producer over a bad network, and the cluster
// admin. With arguments only the scenarios they name.
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const (
	wait = 30 * time.Second
	last = "the last one" // written behind all that is read, since Sarama does not tell of markers
)

var (
	run     = fmt.Sprintf("%08x", rand.Uint32())
	brokers = []string{os.Getenv("BOOTSTRAP")}
)

var scenarios = []struct {
	name string
	play func(*app) string
}{
	{"commit", commit},
	{"abort", abort},
	{"offsets", offsets},
	{"zombie", zombie},
	{"isolation", isolation},
	{"fencing", fencing},
	{"timeout", timeout},
	{"idempotence", idempotence},
	{"admin", admin},
}

// app is what a scenario works with. What goes wrong ends the scenario by a panic with a failure.
type app struct {
	name   string
	adm    sarama.ClusterAdmin
	closed []func() error
}

type failure string

func (a *app) ok(err error) {
	if failed := (sarama.ProducerErrors)(nil); errors.As(err, &failed) {
		err = failed[0]
	}
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

func (a *app) id(suffix string) string {
	return fmt.Sprintf("sarama-%s-%s%s", run, a.name, suffix)
}

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.AllowAutoTopicCreation = false
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	return config
}

func (a *app) producer(config *sarama.Config) sarama.SyncProducer {
	producer, err := sarama.NewSyncProducer(brokers, config)
	a.ok(err)
	a.closed = append(a.closed, producer.Close)
	return producer
}

func (a *app) plain() sarama.SyncProducer {
	return a.producer(config())
}

func (a *app) transactional(suffix string, timeout time.Duration) sarama.SyncProducer {
	config := config()
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Transaction.ID = a.id(suffix)
	config.Producer.Transaction.Timeout = timeout
	return a.producer(config)
}

func (a *app) topic(suffix string, partitions int32, entries map[string]*string) string {
	topic := a.id(suffix)
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: entries}
	a.ok(a.adm.CreateTopic(topic, detail, false))
	a.eventually("partitions", func() any { return a.partitions(topic) }, int(partitions))
	return topic
}

func (a *app) partitions(topic string) int {
	found, err := a.adm.DescribeTopics([]string{topic})
	a.ok(err)
	return len(found[0].Partitions)
}

func messages(topic string, partition int32, values ...string) (made []*sarama.ProducerMessage) {
	for _, value := range values {
		made = append(made, &sarama.ProducerMessage{
			Topic: topic, Partition: partition, Value: sarama.StringEncoder(value)})
	}
	return made
}

// write returns when every record is in the log.
func (a *app) write(producer sarama.SyncProducer, topic string, partition int32, values ...string) {
	a.ok(producer.SendMessages(messages(topic, partition, values...)))
}

func (a *app) lastOffset(topic string, isolation sarama.IsolationLevel) int64 {
	asked := map[string]map[int32]int64{topic: {0: sarama.OffsetNewest}}
	found, err := a.adm.ListOffsets(asked, &sarama.ListOffsetsOptions{IsolationLevel: isolation})
	a.ok(err)
	a.equal("error", found[topic][0].Err, sarama.ErrNoError)
	return found[topic][0].Offset
}

// consume reads from the beginning; patience is how long the broker may keep a request that it has nothing for.
func (a *app) consume(topic string, partition int32, isolation sarama.IsolationLevel, patience time.Duration) sarama.PartitionConsumer {
	config := config()
	config.Consumer.IsolationLevel = isolation
	config.Consumer.MaxWaitTime = patience
	consumer, err := sarama.NewConsumer(brokers, config)
	a.ok(err)
	reader, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	a.ok(err)
	a.closed = append(a.closed, consumer.Close, reader.Close)
	return reader
}

// next waits for one record.
func (a *app) next(reader sarama.PartitionConsumer) string {
	select {
	case message := <-reader.Messages():
		return string(message.Value)
	case <-time.After(wait):
		panic(failure("no record came"))
	}
}

// read gives all that a reader sees of a partition without open transactions, and adds a record behind it.
func (a *app) read(topic string, partition int32, isolation sarama.IsolationLevel) (seen []string) {
	a.write(a.plain(), topic, partition, last)
	reader := a.consume(topic, partition, isolation, 100*time.Millisecond)
	end := reader.HighWaterMarkOffset
	for {
		select {
		case message := <-reader.Messages():
			if value := string(message.Value); value != last {
				seen = append(seen, value)
			} else if message.Offset == end()-1 {
				return seen
			}
		case <-time.After(wait):
			panic(failure(fmt.Sprintf("no end after %d records", len(seen))))
		}
	}
}

func (a *app) committed(topic string) []string {
	return a.read(topic, 0, sarama.ReadCommitted)
}

func (a *app) all(topic string) []string {
	return a.read(topic, 0, sarama.ReadUncommitted)
}

func play(name string, scene func(*app) string) (verdict string) {
	a := &app{name: name}
	defer func() {
		slices.Reverse(a.closed)
		for _, shut := range a.closed {
			if err := shut(); err != nil {
				fmt.Fprintln(os.Stderr, name, "closing:", err) // a fenced producer says it again
			}
		}
		switch wrong := recover().(type) {
		case nil:
		case failure:
			verdict = "FAIL " + name + " " + strings.Join(strings.Fields(string(wrong)), " ")
		default:
			panic(wrong)
		}
	}()
	adm, err := sarama.NewClusterAdmin(brokers, config())
	a.ok(err)
	a.adm = adm
	a.closed = append(a.closed, adm.Close)
	return strings.TrimSpace("pass " + name + " " + scene(a))
}

func version() string {
	built, _ := debug.ReadBuildInfo()
	for _, module := range built.Deps {
		if module.Path == "github.com/IBM/sarama" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func main() {
	fmt.Println("version sarama", version())
	for _, scene := range scenarios {
		if len(os.Args) == 1 || slices.Contains(os.Args[1:], scene.name) {
			fmt.Println(play(scene.name, scene.play))
		}
	}
	fmt.Println("end")
}
