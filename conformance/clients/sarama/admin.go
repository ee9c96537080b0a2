package main

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

func admin(a *app) string {
	nodes, _, err := a.adm.DescribeCluster()
	a.ok(err)
	a.equal("brokers", len(nodes), 1)
	adminTopics(a)
	adminGroups(a)
	return "topics, configs, partitions, records, groups, offsets"
}

func (a *app) config(topic, name string) string {
	found, err := a.adm.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{name}})
	a.ok(err)
	a.equal("configs", len(found), 1)
	return fmt.Sprint(found[0].Value, " ", found[0].Source)
}

func (a *app) alter(topic, name string, how sarama.IncrementalAlterConfigsOperation, value *string) {
	change := map[string]sarama.IncrementalAlterConfigsEntry{name: {Operation: how, Value: value}}
	a.ok(a.adm.IncrementalAlterConfig(sarama.TopicResource, topic, change, false))
}

// adminTopics: topics, their configs and partitions from their making to their end. Cases C-90, C-91, C-94.
func adminTopics(a *app) {
	hour, hours := "3600000", "7200000"
	topic := a.topic("", 2, map[string]*string{"retention.ms": &hour})
	again := a.adm.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false)
	a.refused("made twice", again, sarama.ErrTopicAlreadyExists)
	a.equal("retention.ms", a.config(topic, "retention.ms"), "3600000 Topic")
	a.alter(topic, "retention.ms", sarama.IncrementalAlterConfigsOperationSet, &hours)
	a.eventually("retention.ms", func() any { return a.config(topic, "retention.ms") }, "7200000 Topic")
	a.alter(topic, "retention.ms", sarama.IncrementalAlterConfigsOperationDelete, nil)
	a.eventually("retention.ms", func() any { return a.config(topic, "retention.ms") }, "604800000 Default")
	a.ok(a.adm.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &hour}, false))
	a.eventually("retention.ms", func() any { return a.config(topic, "retention.ms") }, "3600000 Topic")

	a.ok(a.adm.CreatePartitions(topic, 4, nil, false))
	a.eventually("partitions", func() any { return a.partitions(topic) }, 4)
	a.refused("fewer partitions", a.adm.CreatePartitions(topic, 3, nil, false), sarama.ErrInvalidPartitions)

	a.write(a.plain(), topic, 0, numbers(0, 10, 1)...)
	a.ok(a.adm.DeleteRecords(topic, map[int32]int64{0: 4}))
	a.equal("records left", a.committed(topic), numbers(4, 10, 1))
	a.ok(a.adm.DeleteTopic(topic))
	a.eventually("partitions", func() any { return a.partitions(topic) }, 0)
	a.refused("deleted twice", a.adm.DeleteTopic(topic), sarama.ErrUnknownTopicOrPartition)
}

func adminGroups(a *app) {
	topic, group := a.topic("-groups", 1, nil), a.id("")
	a.write(a.plain(), topic, 0, "a", "b", "c")
	a.join(group, topic, func(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) {
		session.MarkMessage(a.batch(claim, 2)[1], "")
		session.Commit()
		listed, err := a.adm.ListConsumerGroups()
		a.ok(err)
		a.equal("listed", listed[group], "consumer")
		described, err := a.adm.DescribeConsumerGroups([]string{group})
		a.ok(err)
		found := described[0]
		one := found.Members[session.MemberID()]
		a.equal("described", []any{found.State, len(found.Members), one.ClientId}, []any{"Stable", 1, "member"})
		assigned, err := one.GetMemberAssignment()
		a.ok(err)
		a.equal("assigned", assigned.Topics, map[string][]int32{topic: {0}})
		a.refused("deleted while in use", a.adm.DeleteConsumerGroup(group), sarama.ErrNonEmptyGroup)
	})
	a.equal("offset", a.stored(group, topic), int64(2))
	back := map[string]map[int32]sarama.OffsetAndMetadata{topic: {0: {Offset: 1, LeaderEpoch: -1}}}
	_, err := a.adm.AlterConsumerGroupOffsets(group, back, nil)
	a.ok(err)
	a.equal("offset set back", a.stored(group, topic), int64(1))
	a.ok(a.adm.DeleteConsumerGroupOffset(group, topic, 0))
	a.equal("offset deleted", a.stored(group, topic), int64(0))
	if err := a.adm.DeleteConsumerGroup(group); !errors.Is(err, sarama.ErrGroupIDNotFound) {
		a.ok(err) // a group that has lost its last offset may be gone by itself
	}
}
