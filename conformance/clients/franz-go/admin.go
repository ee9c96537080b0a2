package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transactions: what tools are told of one that is open, and of one that has ended. Case C-52.
func transactions(a *app) string {
	topic, id := a.topic("", 2, nil), a.id("")
	producer := a.transactional("", kgo.TransactionTimeout(30*time.Second))
	a.write(a.client(), topic, 1, "outside")
	a.ok(producer.BeginTransaction())
	a.write(producer, topic, 1, "a", "b")

	listed, err := a.adm.ListTransactions(a, nil, []string{"Ongoing"})
	a.ok(err)
	pid, epoch, err := producer.ProducerID(a)
	a.ok(err)
	a.equal("listed", listed[id].ProducerID, pid)
	described, err := a.adm.DescribeTransactions(a, id)
	a.ok(err)
	found := described[id]
	a.equal("described", []any{found.State, found.TimeoutMillis, found.ProducerID, found.ProducerEpoch},
		[]any{"Ongoing", int32(30000), pid, epoch})
	a.equal("partitions", found.Topics.Sorted(), kadm.TopicsList{{Topic: topic, Partitions: []int32{1}}})
	a.equal("begun just now", time.Since(time.UnixMilli(found.StartTimestamp)) < wait, true)
	a.equal("producer", a.producer(topic, 1, pid), [3]int64{int64(epoch), 1, 1})

	a.end(producer, kgo.TryCommit)
	a.eventually("state", func() any {
		described, err := a.adm.DescribeTransactions(a, id)
		a.ok(err)
		return described[id].State
	}, "CompleteCommit")
	a.equal("producer", a.producer(topic, 1, pid), [3]int64{int64(epoch), 1, -1})
	missing, err := a.adm.DescribeTransactions(a, id+"-missing")
	a.ok(err)
	a.refused("missing id", missing[id+"-missing"].Err, kerr.TransactionalIDNotFound)
	return ""
}

// producer gives epoch, last sequence and first offset of the transaction.
func (a *app) producer(topic string, partition int32, pid int64) [3]int64 {
	var asked kadm.TopicsSet
	asked.Add(topic, partition)
	found, err := a.adm.DescribeProducers(a, asked)
	a.ok(err)
	one := found[topic].Partitions[partition].ActiveProducers[pid]
	return [3]int64{int64(one.ProducerEpoch), int64(one.LastSequence), one.CurrentTxnStartOffset}
}

// markers: a tool ends a transaction in one partition, as one does that was left hanging. Cases C-11, C-51.
func markers(a *app) string {
	topic := a.topic("", 1, nil)
	producer := a.transactional("")
	a.ok(producer.BeginTransaction())
	a.write(producer, topic, 0, "hanging")
	pid, epoch, err := producer.ProducerID(a)
	a.ok(err)
	var ends kadm.TopicsSet
	ends.Add(topic, 0)
	answers, err := a.adm.WriteTxnMarkers(a, kadm.TxnMarkers{
		ProducerID: pid, ProducerEpoch: epoch, CoordinatorEpoch: -1, Topics: ends})
	a.ok(err)
	a.ok(answers[pid].Topics[topic].Partitions[0].Err)
	a.eventually("last stable offset", func() any { return a.lastOffset(topic, true) }, int64(2))
	a.equal("committed records", a.committed(topic), []string(nil))
	// Apache Kafka's coordinator has not heard of it, and lets the producer go on; oncelog has ended the whole transaction.
	a.refused("its own end", producer.EndTransaction(a, kgo.TryAbort), nil, kerr.ProducerFenced)
	next := a.transactional("")
	a.ok(next.BeginTransaction())
	a.write(next, topic, 0, "next")
	a.end(next, kgo.TryCommit)
	a.equal("committed records", a.committed(topic), []string{"next"})
	return ""
}

func admin(a *app) string {
	brokers, err := a.adm.ListBrokers(a)
	a.ok(err)
	a.equal("brokers", len(brokers), 1)
	adminTopics(a)
	adminGroups(a)
	return "topics, configs, partitions, records, groups, offsets"
}

func (a *app) config(topic, name string) string {
	found, err := a.adm.DescribeTopicConfigs(a, topic)
	a.ok(err)
	resource, err := found.On(topic, nil)
	a.ok(err)
	for _, one := range resource.Configs {
		if one.Key == name {
			return fmt.Sprint(one.MaybeValue(), " ", one.Source)
		}
	}
	return "none"
}

func (a *app) alter(topic string, changes ...kadm.AlterConfig) {
	answers, err := a.adm.AlterTopicConfigs(a, changes, topic)
	a.ok(err)
	_, err = answers.On(topic, func(answer *kadm.AlterConfigsResponse) error { return answer.Err })
	a.ok(err)
}

// adminTopics: topics, their configs and partitions from their making to their end. Cases C-90, C-91, C-94.
func adminTopics(a *app) {
	topic := a.topic("", 2, map[string]*string{"retention.ms": kadm.StringPtr("3600000")})
	_, err := a.adm.CreateTopic(a, 2, 1, nil, topic)
	a.refused("made twice", err, kerr.TopicAlreadyExists)
	_, err = a.adm.CreateTopic(a, 0, 1, nil, topic+"-none")
	a.refused("no partitions", err, kerr.InvalidPartitions)
	a.equal("retention.ms", a.config(topic, "retention.ms"), "3600000 DYNAMIC_TOPIC_CONFIG")
	a.alter(topic, kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("7200000")},
		kadm.AlterConfig{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")})
	a.eventually("retention.ms", func() any { return a.config(topic, "retention.ms") }, "7200000 DYNAMIC_TOPIC_CONFIG")
	a.equal("cleanup.policy", a.config(topic, "cleanup.policy"), "delete,compact DYNAMIC_TOPIC_CONFIG")
	a.alter(topic, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "retention.ms"},
		kadm.AlterConfig{Op: kadm.SubtractConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")})
	a.eventually("cleanup.policy", func() any { return a.config(topic, "cleanup.policy") }, "delete DYNAMIC_TOPIC_CONFIG")
	a.equal("retention.ms", a.config(topic, "retention.ms"), "604800000 DEFAULT_CONFIG")

	grown, err := a.adm.UpdatePartitions(a, 4, topic)
	a.ok(err)
	a.ok(grown[topic].Err)
	a.eventually("partitions", func() any { return a.partitions(topic) }, 4)
	shrunk, err := a.adm.UpdatePartitions(a, 3, topic)
	a.ok(err)
	a.refused("fewer partitions", shrunk[topic].Err, kerr.InvalidPartitions)

	a.write(a.client(), topic, 0, numbers(0, 10, 1)...)
	var cut kadm.Offsets
	cut.AddOffset(topic, 0, 4, -1)
	answers, err := a.adm.DeleteRecords(a, cut)
	a.ok(err)
	answer, _ := answers.Lookup(topic, 0)
	a.equal("low watermark", []any{answer.LowWatermark, answer.Err}, []any{int64(4), nil})
	a.equal("records left", a.committed(topic), numbers(4, 10, 1))

	_, err = a.adm.DeleteTopic(a, topic)
	a.ok(err)
	a.eventually("partitions", func() any { return a.partitions(topic) }, 0)
	_, err = a.adm.DeleteTopic(a, topic)
	a.refused("deleted twice", err, kerr.UnknownTopicOrPartition)
}

func adminGroups(a *app) {
	topic, group := a.topic("-groups", 1, nil), a.id("")
	a.write(a.client(), topic, 0, "a", "b", "c")
	consumer := a.client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ClientID("member"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	records := consumer.PollRecords(a, 2).Records()
	a.ok(consumer.CommitRecords(a, records[len(records)-1]))
	position := records[len(records)-1].Offset + 1

	listed, err := a.adm.ListGroups(a, "Stable")
	a.ok(err)
	a.equal("listed", listed[group].State, "Stable")
	described, err := a.adm.DescribeGroups(a, group)
	a.ok(err)
	found := described[group]
	a.equal("described", []any{found.State, found.ProtocolType, len(found.Members), found.Members[0].ClientID},
		[]any{"Stable", "consumer", 1, "member"})
	a.equal("assigned", found.AssignedPartitions().Sorted(), kadm.TopicsList{{Topic: topic, Partitions: []int32{0}}})
	lags, err := a.adm.Lag(a, group)
	a.ok(err)
	a.equal("lag", lags[group].Lag.Total(), 3-position)
	_, err = a.adm.DeleteGroup(a, group)
	a.refused("deleted while in use", err, kerr.NonEmptyGroup)
	consumer.Close()

	a.equal("offset", a.stored(group, topic), position)
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, 1, -1)
	a.ok(a.adm.CommitAllOffsets(a, group, offsets))
	a.equal("offset set back", a.stored(group, topic), int64(1))
	var forget kadm.TopicsSet
	forget.Add(topic, 0)
	gone, err := a.adm.DeleteOffsets(a, group, forget)
	a.ok(err)
	a.ok(gone.Error())
	a.equal("offset deleted", a.stored(group, topic), int64(0))
	_, err = a.adm.DeleteGroup(a, group)
	a.refused("group without offsets is gone, or is deleted", err, nil, kerr.GroupIDNotFound)
}
