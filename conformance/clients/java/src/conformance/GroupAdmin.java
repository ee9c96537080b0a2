package conformance;

import static conformance.Clients.admin;
import static conformance.Clients.member;
import static conformance.Scenarios.check;
import static conformance.Scenarios.refused;
import static conformance.Scenarios.same;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/** Groups and their offsets. The names of the consumer-group calls are those that both majors have. */
@SuppressWarnings({"deprecation", "removal"})
final class GroupAdmin {
    private GroupAdmin() {}

    static String groups() throws Exception {
        String topic = Clients.topic("groups", 2);
        String group = topic;
        TopicPartition first = new TopicPartition(topic, 0);
        TopicPartition second = new TopicPartition(topic, 1);
        try (Admin admin = admin();
                Producer<String, String> producer = Clients.producer(Map.of())) {
            Clients.put(producer, topic, 0, "a", "b", "c");
            try (Consumer<String, String> reader = member(group)) {
                reader.subscribe(List.of(topic));
                Scenarios.until("the assignment", Duration.ofSeconds(30), () -> {
                    reader.poll(Duration.ofMillis(100));
                    return reader.assignment().size() == 2;
                });
                reader.commitSync(Map.of(first, new OffsetAndMetadata(2), second, new OffsetAndMetadata(0)));
                whileItHasAMember(admin, group, first);
            }
            whenItIsEmpty(admin, group, first, second);
        }
        return "";
    }

    private static void whileItHasAMember(Admin admin, String group, TopicPartition first) throws Exception {
        check(listed(admin, group), "not listed");
        ConsumerGroupDescription described = described(admin, group);
        same("STABLE", described.state().name(), "state");
        same("range", described.partitionAssignor(), "assignor");
        same(1, described.members().size(), "members");
        same(2, described.members().iterator().next().assignment().topicPartitions().size(), "its partitions");
        refused(GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
        refused(
                UnknownMemberIdException.class,
                () -> admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(1))).all().get());
        refused(
                GroupSubscribedToTopicException.class,
                () -> admin.deleteConsumerGroupOffsets(group, Set.of(first)).all().get());
    }

    private static void whenItIsEmpty(Admin admin, String group, TopicPartition first, TopicPartition second)
            throws Exception {
        same("EMPTY", described(admin, group).state().name(), "state");
        same(Map.of(first, 2L, second, 0L), offsets(admin, group), "offsets");
        admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(1))).all().get();
        same(Map.of(first, 1L, second, 0L), offsets(admin, group), "offsets after they were altered");
        admin.deleteConsumerGroupOffsets(group, Set.of(second)).all().get();
        same(Map.of(first, 1L), offsets(admin, group), "offsets after one was deleted");

        removeMember(admin, group);
        admin.deleteConsumerGroups(List.of(group)).all().get();
        check(!listed(admin, group), "deleted, and still listed");
        refused(GroupIdNotFoundException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
        same(Map.of(), offsets(admin, group), "offsets of a deleted group");
    }

    /** A static member keeps its place when it leaves, until an administrator removes it. */
    private static void removeMember(Admin admin, String group) throws Exception {
        Map<String, Object> settings = Map.of("group.id", group, "group.instance.id", "one");
        try (Consumer<String, String> reader = Clients.consumer(settings)) {
            reader.subscribe(List.of(group));
            Scenarios.until("the assignment", Duration.ofSeconds(30), () -> {
                reader.poll(Duration.ofMillis(100));
                return !reader.assignment().isEmpty();
            });
        }
        same("one", described(admin, group).members().iterator().next().groupInstanceId().orElse(""), "static member");
        var one = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")));
        admin.removeMembersFromConsumerGroup(group, one).all().get();
        same("EMPTY", described(admin, group).state().name(), "state after it was removed");
    }

    private static boolean listed(Admin admin, String group) throws ExecutionException, InterruptedException {
        return admin.listConsumerGroups().all().get().stream()
                .map(ConsumerGroupListing::groupId)
                .anyMatch(group::equals);
    }

    private static ConsumerGroupDescription described(Admin admin, String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    private static Map<TopicPartition, Long> offsets(Admin admin, String group) throws Exception {
        Map<TopicPartition, Long> offsets = new java.util.HashMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .forEach((partition, offset) -> offsets.put(partition, offset.offset()));
        return offsets;
    }
}
