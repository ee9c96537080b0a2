package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func end(producer sarama.SyncProducer, commit bool) error {
	if commit {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}

// commit writes to two topics of three partitions each, all in one transaction at a time.
func commit(a *app) string {
	topics := []string{a.topic("-a", 3, nil), a.topic("-b", 3, nil)}
	producer := a.transactional("", time.Minute)
	wanted := map[int32][]string{}
	for round := range 10 {
		a.ok(producer.BeginTxn())
		for partition := range int32(3) {
			var values []string
			for n := range 10 {
				values = append(values, fmt.Sprintf("%d/%d/%d", round, partition, n))
			}
			wanted[partition] = append(wanted[partition], values...)
			for _, topic := range topics {
				a.write(producer, topic, partition, values...)
			}
		}
		a.ok(producer.CommitTxn())
	}
	for _, topic := range topics {
		for partition := range int32(3) {
			a.equal("committed records", a.read(topic, partition, sarama.ReadCommitted), wanted[partition])
		}
	}
	return "600 records in 10 transactions over 6 partitions"
}

// abort lays transactions of three producers across each other; about half are aborted. Cases C-03, C-06, C-10.
func abort(a *app) string {
	topic := a.topic("", 1, nil)
	dice := rand.New(rand.NewPCG(1, 1))
	var producers []sarama.SyncProducer
	for n := range 3 {
		producers = append(producers, a.transactional(fmt.Sprint("-", n), time.Minute))
	}
	var log, kept []string
	committed := map[string]bool{}
	for round := range 12 {
		for _, producer := range producers {
			a.ok(producer.BeginTxn())
		}
		for part := range 2 {
			for n, producer := range producers {
				value := fmt.Sprintf("%d/%d/%d", round, n, part)
				a.write(producer, topic, 0, value+"/a", value+"/b")
				log = append(log, value+"/a", value+"/b")
			}
		}
		for _, n := range dice.Perm(3) {
			commits := dice.IntN(2) == 0
			a.ok(end(producers[n], commits))
			committed[fmt.Sprintf("%d/%d/", round, n)] = commits
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
	outside, producer := a.plain(), a.transactional("", time.Minute)
	a.write(outside, topic, 0, "before")
	a.ok(producer.BeginTxn())
	a.write(producer, topic, 0, "inside")
	a.write(outside, topic, 0, "behind")
	a.equal("last stable offset", a.lastOffset(topic, sarama.ReadCommitted), int64(1))
	a.equal("high watermark", a.lastOffset(topic, sarama.ReadUncommitted), int64(3))
	all := a.consume(topic, 0, sarama.ReadUncommitted, time.Second)
	a.equal("all records", []string{a.next(all), a.next(all), a.next(all)}, []string{"before", "inside", "behind"})

	waiting := a.consume(topic, 0, sarama.ReadCommitted, 5*time.Second)
	a.equal("committed records", a.next(waiting), "before")
	select {
	case message := <-waiting.Messages():
		a.equal("record while open", string(message.Value), nil)
	case <-time.After(time.Second):
	}
	a.ok(producer.CommitTxn())
	began := time.Now()
	a.equal("records after the commit", []string{a.next(waiting), a.next(waiting)}, []string{"inside", "behind"})
	woken := time.Since(began)
	a.equal("last stable offset", a.lastOffset(topic, sarama.ReadCommitted), int64(4))
	return fmt.Sprintf("woken %d ms after the commit", woken.Milliseconds())
}

// fencing: the second owner of an id aborts the first one's transaction. Cases C-13, C-29, C-30.
func fencing(a *app) string {
	topic := a.topic("", 1, nil)
	first := a.transactional("", time.Minute)
	a.ok(first.BeginTxn())
	a.write(first, topic, 0, "first")
	second := a.transactional("", time.Minute)
	refusal := first.CommitTxn()
	a.refused("commit of the first", refusal, sarama.ErrProducerFenced, sarama.ErrInvalidProducerEpoch)
	a.ok(second.BeginTxn())
	a.write(second, topic, 0, "second")
	a.ok(second.CommitTxn())
	a.equal("committed records", a.committed(topic), []string{"second"})
	a.equal("all records", a.all(topic), []string{"first", "second"})
	return fmt.Sprintf("%q", refusal)
}

// timeout: the broker aborts what was left open, and its producer is fenced. Cases C-12, C-18.
func timeout(a *app) string {
	topic := a.topic("", 1, nil)
	producer := a.transactional("", 2*time.Second)
	a.ok(producer.BeginTxn())
	a.write(producer, topic, 0, "late")
	began := time.Now()
	a.eventually("last stable offset", func() any { return a.lastOffset(topic, sarama.ReadCommitted) }, int64(2))
	took := time.Since(began)
	a.equal("not aborted early", took > 1900*time.Millisecond, true)
	refusal := producer.CommitTxn()
	a.refused("commit", refusal, sarama.ErrProducerFenced, sarama.ErrInvalidProducerEpoch)
	a.equal("committed records", a.committed(topic), []string(nil))
	return fmt.Sprintf("aborted after %.1f s of 2", took.Seconds())
}

// idempotence: connections break while answers are awaited, so batches are sent again. Case C-61.
func idempotence(a *app) string {
	const records = 3000
	topic := a.topic("", 3, nil)
	network := &network{every: 25}
	config := config()
	config.Net.Proxy.Enable, config.Net.Proxy.Dialer = true, network
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.Flush.MaxMessages = 20
	config.Producer.Retry.Max = 100
	config.Producer.Retry.Backoff = 10 * time.Millisecond
	config.Metadata.Retry.Max, config.Metadata.Retry.Backoff = 100, 10*time.Millisecond
	producer, err := sarama.NewAsyncProducer(brokers, config)
	a.ok(err)
	go func() {
		for n := range records {
			producer.Input() <- messages(topic, int32(n%3), strconv.Itoa(n))[0]
		}
	}()
	for range records {
		select {
		case <-producer.Successes():
		case failed := <-producer.Errors():
			a.ok(failed)
		case <-time.After(wait):
			panic(failure("a record has no answer"))
		}
	}
	a.ok(producer.Close())
	for partition := range 3 {
		a.equal("records", a.read(topic, int32(partition), sarama.ReadCommitted), numbers(partition, records, 3))
	}
	a.equal("connections were cut", network.cuts.Load() > 0, true)
	return fmt.Sprintf("%d records, %d connections cut", records, network.cuts.Load())
}
