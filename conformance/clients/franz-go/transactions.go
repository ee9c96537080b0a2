package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// commit writes to two topics of three partitions each, all in one transaction at a time.
func commit(a *app) string {
	topics := []string{a.topic("-a", 3, nil), a.topic("-b", 3, nil)}
	producer := a.transactional("")
	wanted := map[int32][]string{}
	for round := range 10 {
		a.ok(producer.BeginTransaction())
		for partition := range int32(3) {
			for n := range 10 {
				value := fmt.Sprintf("%d/%d/%d", round, partition, n)
				wanted[partition] = append(wanted[partition], value)
				for _, topic := range topics {
					producer.Produce(a, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}, nil)
				}
			}
		}
		a.end(producer, kgo.TryCommit)
	}
	for _, topic := range topics {
		a.equal("committed records", a.read(topic, kgo.ReadCommitted()), wanted)
	}
	return "600 records in 10 transactions over 6 partitions"
}

// abort lays transactions of three producers across each other; about half are aborted. Cases C-03, C-06, C-10.
func abort(a *app) string {
	topic := a.topic("", 1, nil)
	dice := rand.New(rand.NewPCG(1, 1))
	var producers []*kgo.Client
	for n := range 3 {
		producers = append(producers, a.transactional(fmt.Sprint("-", n)))
	}
	var log, kept []string
	committed := map[string]bool{}
	for round := range 12 {
		for _, producer := range producers {
			a.ok(producer.BeginTransaction())
		}
		for part := range 2 {
			for n, producer := range producers {
				value := fmt.Sprintf("%d/%d/%d", round, n, part)
				a.write(producer, topic, 0, value+"/a", value+"/b")
				log = append(log, value+"/a", value+"/b")
			}
		}
		for _, n := range dice.Perm(3) {
			how := kgo.TransactionEndTry(dice.IntN(2) == 0)
			a.end(producers[n], how)
			committed[fmt.Sprintf("%d/%d/", round, n)] = bool(how)
		}
	}
	for _, value := range log {
		if committed[value[:strings.LastIndex(value[:len(value)-2], "/")+1]] {
			kept = append(kept, value)
		}
	}
	a.equal("committed records", a.committed(topic), kept)
	a.equal("all records", a.all(topic), log)
	return fmt.Sprintf("36 transactions, %d of %d records unseen", len(log)-len(kept), len(log))
}

// isolation: an open transaction holds a waiting reader back, and its commit wakes it. Cases C-02, C-08.
func isolation(a *app) string {
	topic := a.topic("", 1, nil)
	outside, producer := a.client(), a.transactional("")
	a.write(outside, topic, 0, "before")
	a.ok(producer.BeginTransaction())
	a.write(producer, topic, 0, "inside")
	a.write(outside, topic, 0, "behind")
	a.equal("committed records", a.committed(topic), []string{"before"})
	a.equal("all records", a.all(topic), []string{"before", "inside", "behind"})
	a.equal("last stable offset", a.lastOffset(topic, true), int64(1))
	a.equal("high watermark", a.lastOffset(topic, false), int64(3))

	waiting := a.client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(20*time.Second),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(1)}}))
	values := make(chan string, 10)
	go func() {
		waiting.PollFetches(a).EachRecord(func(record *kgo.Record) { values <- string(record.Value) })
		close(values)
	}()
	select {
	case value := <-values:
		a.equal("record while open", value, nil)
	case <-time.After(time.Second):
	}
	a.end(producer, kgo.TryCommit)
	began := time.Now()
	a.equal("records after the commit", []string{<-values, <-values}, []string{"inside", "behind"})
	woken := time.Since(began)
	a.equal("last stable offset", a.lastOffset(topic, true), int64(4))
	return fmt.Sprintf("woken %d ms after the commit", woken.Milliseconds())
}

// fencing: the second owner of an id aborts the first one's transaction. Cases C-13, C-29.
func fencing(a *app) string {
	topic := a.topic("", 1, nil)
	first, second := a.transactional(""), a.transactional("")
	a.ok(first.BeginTransaction())
	a.write(first, topic, 0, "first")
	a.ok(second.BeginTransaction())
	a.write(second, topic, 0, "second")
	refusal := first.EndTransaction(a, kgo.TryCommit)
	a.refused("commit of the first", refusal, kerr.ProducerFenced, kerr.InvalidProducerEpoch)
	a.end(second, kgo.TryCommit)
	a.equal("committed records", a.committed(topic), []string{"second"})
	a.equal("all records", a.all(topic), []string{"first", "second"})
	return strings.SplitN(refusal.Error(), ":", 2)[0]
}

// timeout: the broker aborts what was left open, and its producer is fenced. Cases C-12, C-18.
func timeout(a *app) string {
	topic := a.topic("", 1, nil)
	producer := a.transactional("", kgo.TransactionTimeout(2*time.Second))
	a.ok(producer.BeginTransaction())
	a.write(producer, topic, 0, "late")
	began := time.Now()
	a.eventually("last stable offset", func() any { return a.lastOffset(topic, true) }, int64(2))
	took := time.Since(began)
	a.equal("not aborted early", took > 1900*time.Millisecond, true)
	refusal := producer.EndTransaction(a, kgo.TryCommit)
	a.refused("commit", refusal, kerr.ProducerFenced, kerr.InvalidProducerEpoch)
	a.equal("committed records", a.committed(topic), []string(nil))
	return fmt.Sprintf("aborted after %.1f s of 2; %s", took.Seconds(), strings.SplitN(refusal.Error(), ":", 2)[0])
}
