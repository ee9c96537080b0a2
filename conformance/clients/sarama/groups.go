package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

func numbers(from, to, step int) (values []string) {
	for n := from; n < to; n += step {
		values = append(values, strconv.Itoa(n))
	}
	return values
}

func (a *app) stored(group, topic string) int64 {
	found, err := a.adm.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	a.ok(err)
	a.equal("error", found.Err, sarama.ErrNoError)
	return max(found.GetBlock(topic, 0).Offset, 0)
}

// member runs `work` as a member of the group, with one claim; a panic in it is the scenario's.
type member struct {
	work   func(sarama.ConsumerGroupSession, sarama.ConsumerGroupClaim)
	failed chan any
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	defer func() { m.failed <- recover() }()
	m.work(session, claim)
	return nil
}

func (a *app) join(group, topic string, work func(sarama.ConsumerGroupSession, sarama.ConsumerGroupClaim)) {
	config := config()
	config.ClientID = "member"
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	consumer, err := sarama.NewConsumerGroup(brokers, group, config)
	a.ok(err)
	one := &member{work, make(chan any, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	consumed := consumer.Consume(ctx, []string{topic}, one)
	a.ok(consumer.Close())
	a.ok(consumed)
	if wrong := <-one.failed; wrong != nil {
		panic(wrong)
	}
}

// batch waits for the next records of a claim.
func (a *app) batch(claim sarama.ConsumerGroupClaim, size int) (batch []*sarama.ConsumerMessage) {
	for len(batch) < size {
		select {
		case message, open := <-claim.Messages():
			a.equal("claim is open", open, true)
			batch = append(batch, message)
		case <-time.After(wait):
			panic(failure("no record came"))
		}
	}
	return batch
}

// offsets reads, doubles and writes; each third transaction is aborted at first. Case C-14.
func offsets(a *app) string {
	source, target, group := a.topic("-in", 1, nil), a.topic("-out", 1, nil), a.id("")
	a.write(a.plain(), source, 0, numbers(0, 100, 1)...)
	producer, turns := a.transactional("", time.Minute), 0
	a.join(group, source, func(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) {
		metadata := sarama.NewConsumerGroupMetadataFromSession(session, group, nil)
		for done := int64(0); done < 100; {
			batch := a.batch(claim, 10)
			for stored := false; !stored; {
				turns++
				stored = turns%3 != 0
				a.ok(producer.BeginTxn())
				for _, message := range batch {
					n, _ := strconv.Atoi(string(message.Value))
					a.write(producer, target, 0, strconv.Itoa(2*n))
				}
				a.ok(producer.AddMessageToTxnWithGroupMetadata(batch[len(batch)-1], metadata, nil))
				a.ok(end(producer, stored))
				if stored {
					done += int64(len(batch))
				}
				a.eventually("offset of the group", func() any { return a.stored(group, source) }, done)
			}
		}
	})
	a.equal("results", a.committed(target), numbers(0, 200, 2))
	return fmt.Sprintf("100 records in %d transactions", turns)
}

// zombie: a member that has left the group keeps its producer, and may not move the group's offsets any more.
func zombie(a *app) string {
	topic, group := a.topic("", 1, nil), a.id("")
	a.write(a.plain(), topic, 0, "one")
	var stale *sarama.ConsumerGroupMetadata
	a.join(group, topic, func(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) {
		stale = sarama.NewConsumerGroupMetadataFromSession(session, group, nil)
	})
	a.join(group, topic, func(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) {
		message := a.batch(claim, 1)[0]
		producer := a.transactional("", time.Minute)
		a.ok(producer.BeginTxn())
		a.ok(producer.AddMessageToTxnWithGroupMetadata(message, stale, nil)) // sent with the commit
		a.refused("commit", producer.CommitTxn(), sarama.ErrUnknownMemberId, sarama.ErrIllegalGeneration)
		a.ok(producer.AbortTxn())
		a.equal("offset of the group", a.stored(group, topic), int64(0))
	})
	return ""
}
