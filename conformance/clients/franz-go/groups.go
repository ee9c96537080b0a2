package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (a *app) session(id, group, topic string) *kgo.GroupTransactSession {
	session, err := kgo.NewGroupTransactSession(seeds, kgo.TransactionalID(a.id(id)), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	a.ok(err)
	return session
}

func (a *app) stored(group, topic string) int64 {
	found, err := a.adm.FetchOffsets(kadm.RequireStable(a), group)
	a.ok(err)
	offset, there := found.Lookup(topic, 0)
	if !there {
		return 0
	}
	return offset.At
}

// double writes twice the number that it reads.
func double(topic string, record *kgo.Record) *kgo.Record {
	n, _ := strconv.Atoi(string(record.Value))
	return &kgo.Record{Topic: topic, Partition: record.Partition, Value: []byte(strconv.Itoa(2 * n))}
}

func numbers(from, to, step int) (values []string) {
	for n := from; n < to; n += step {
		values = append(values, strconv.Itoa(n))
	}
	return values
}

// offsets reads, doubles and writes; each third transaction is aborted at first. Cases C-14, C-58.
func offsets(a *app) string {
	source, target, group := a.topic("-in", 1, nil), a.topic("-out", 1, nil), a.id("")
	a.write(a.client(), source, 0, numbers(0, 100, 1)...)
	session := a.session("", group, source)
	defer session.Close()
	turns := 0
	for done := int64(0); done < 100; {
		batch := session.PollRecords(a, 10).Records()
		a.equal("first of the batch", batch[0].Offset, done)
		turns++
		a.ok(session.Begin())
		for _, record := range batch {
			session.Produce(a, double(target, record), nil)
		}
		how := kgo.TransactionEndTry(turns%3 != 0)
		committed, err := session.End(a, how)
		a.ok(err)
		a.equal("committed", committed, bool(how))
		if committed {
			done = batch[len(batch)-1].Offset + 1
		}
		a.equal("offset of the group", a.stored(group, source), done)
	}
	a.equal("results", a.committed(target), numbers(0, 200, 2))
	return fmt.Sprintf("100 records in %d transactions", turns)
}

// rebalance: members come and go while they process; each record counts once.
func rebalance(a *app) string {
	const partitions, records = 6, 3000
	source, target, group := a.topic("-in", partitions, nil), a.topic("-out", partitions, nil), a.id("")
	feeder := a.client()
	for partition := range partitions {
		a.write(feeder, source, int32(partition), numbers(partition, records, partitions)...)
	}
	ctx, enough := context.WithCancel(a)
	var done, aborted atomic.Int64
	var members sync.WaitGroup
	failures := make(chan error, 10)
	member := func(id string, ctx context.Context) {
		session := a.session(id, group, source)
		members.Go(func() {
			defer session.Close()
			for {
				batch := session.PollRecords(ctx, 50).Records()
				if ctx.Err() != nil {
					return
				}
				if err := session.Begin(); err != nil {
					failures <- err
					return
				}
				for _, record := range batch {
					session.Produce(a, double(target, record), nil)
				}
				committed, err := session.End(a, kgo.TryCommit)
				if err != nil {
					failures <- err
					return
				}
				if committed && done.Add(int64(len(batch))) >= records {
					enough()
				} else if !committed {
					aborted.Add(1)
				}
			}
		})
	}
	passing, leave := context.WithCancel(ctx)
	member("-a", ctx)
	member("-b", passing)
	a.eventually("progress", func() any { return done.Load() > records/5 }, true)
	member("-c", ctx)
	a.eventually("progress", func() any { return done.Load() > 2*records/5 }, true)
	leave()
	members.Wait()
	enough()
	close(failures)
	a.ok(errors.Join(slices.Collect(func(yield func(error) bool) {
		for err := range failures {
			yield(err)
		}
	})...))
	a.ok(a.Err())
	results := a.read(target, kgo.ReadCommitted())
	for partition := range int32(partitions) {
		a.equal("results", results[partition], numbers(2*int(partition), 2*records, 2*partitions))
	}
	return fmt.Sprintf("%d records by three members, %d transactions aborted by a rebalance", records, aborted.Load())
}

// idempotence: connections break while answers are awaited, so batches are sent again. Case C-61.
func idempotence(a *app) string {
	topic := a.topic("", 3, nil)
	network := &network{every: 8}
	producer := a.client(kgo.Dialer(network.dial), kgo.ProducerBatchMaxBytes(512), kgo.RecordDeliveryTimeout(time.Minute),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
	var lost atomic.Int64
	for n := range 6000 {
		producer.Produce(a, &kgo.Record{Topic: topic, Partition: int32(n % 3), Value: []byte(strconv.Itoa(n))},
			func(_ *kgo.Record, err error) {
				if err != nil {
					lost.Add(1)
				}
			})
	}
	a.ok(producer.Flush(a))
	a.equal("failed records", lost.Load(), int64(0))
	found := a.read(topic, kgo.ReadCommitted())
	for partition := range 3 {
		a.equal("records", found[int32(partition)], numbers(partition, 6000, 3))
	}
	a.equal("connections were cut", network.cuts.Load() > 0, true)
	return fmt.Sprintf("6000 records, %d connections cut", network.cuts.Load())
}
