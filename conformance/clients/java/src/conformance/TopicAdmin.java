package conformance;

import static conformance.Clients.admin;
import static conformance.Scenarios.check;
import static conformance.Scenarios.refused;
import static conformance.Scenarios.same;

import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Topics, their settings, their records and where they lie. */
final class TopicAdmin {
    private TopicAdmin() {}

    /** Made, seen, widened and deleted; and what is refused. */
    static String topics() throws Exception {
        String name = Clients.named("topic");
        try (Admin admin = admin()) {
            DescribeClusterResult cluster = admin.describeCluster();
            same(1, cluster.nodes().get().size(), "nodes");
            check(!cluster.clusterId().get().isEmpty(), "the cluster has an id");

            NewTopic topic = new NewTopic(name, 2, (short) 1).configs(Map.of("retention.ms", "86400000"));
            admin.createTopics(List.of(topic), new CreateTopicsOptions().validateOnly(true)).all().get();
            check(!admin.listTopics().names().get().contains(name), "only validated, and yet it is there");
            admin.createTopics(List.of(topic)).all().get();
            check(admin.listTopics().names().get().contains(name), "made, and not listed");
            refused(TopicExistsException.class, () -> create(admin, name, 1, 1));
            refused(InvalidPartitionsException.class, () -> create(admin, name + "-none", 0, 1));
            refused(InvalidReplicationFactorException.class, () -> create(admin, name + "-three", 1, 3));
            refused(InvalidTopicException.class, () -> create(admin, "not a name", 1, 1));

            TopicDescription described = described(admin, name);
            same(2, described.partitions().size(), "partitions");
            same(1, described.partitions().get(1).isr().size(), "replicas in sync");
            check(described.partitions().get(1).leader() != null, "a partition without a leader");

            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(4))).all().get();
            same(4, described(admin, name).partitions().size(), "partitions afterwards");
            refused(InvalidPartitionsException.class, () -> widen(admin, name, 3));
            refused(UnknownTopicOrPartitionException.class, () -> widen(admin, name + "-none", 3));
            try (Producer<String, String> producer = Clients.producer(Map.of())) {
                Clients.put(producer, name, 3, "on the last one");
            }
            same(List.of("on the last one"), Clients.read(Clients.COMMITTED, name, 0, 1, 2, 3), "records");

            admin.deleteTopics(List.of(name)).all().get();
            check(!admin.listTopics().names().get().contains(name), "deleted, and still listed");
            refused(UnknownTopicOrPartitionException.class, () -> admin.deleteTopics(List.of(name)).all().get());
            refused(UnknownTopicOrPartitionException.class, () -> described(admin, name));
        }
        return "";
    }

    private static void create(Admin admin, String name, int partitions, int replicas) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) replicas))).all().get();
    }

    private static void widen(Admin admin, String name, int partitions) throws Exception {
        admin.createPartitions(Map.of(name, NewPartitions.increaseTo(partitions))).all().get();
    }

    private static TopicDescription described(Admin admin, String name) throws Exception {
        return admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
    }

    /** A topic's setting is changed and taken back; the broker's own can be read. */
    static String configs() throws Exception {
        String name = Clients.topic("configs", 1);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        try (Admin admin = admin()) {
            String before = entry(admin, topic, "retention.ms").value();
            same(ConfigEntry.ConfigSource.DEFAULT_CONFIG, entry(admin, topic, "retention.ms").source(), "source");
            alter(admin, topic, "retention.ms", "123456", AlterConfigOp.OpType.SET);
            same("123456", entry(admin, topic, "retention.ms").value(), "after it was set");
            same(
                    ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG,
                    entry(admin, topic, "retention.ms").source(),
                    "source after it was set");
            alter(admin, topic, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
            check(entry(admin, topic, "cleanup.policy").value().contains("compact"), "appended, and not there");
            alter(admin, topic, "cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT);
            same("delete", entry(admin, topic, "cleanup.policy").value(), "after it was subtracted");
            alter(admin, topic, "retention.ms", "", AlterConfigOp.OpType.DELETE);
            same(before, entry(admin, topic, "retention.ms").value(), "after it was taken back");
            refused(
                    InvalidConfigurationException.class,
                    () -> alter(admin, topic, "retention.ms", "soon", AlterConfigOp.OpType.SET));
            refused(
                    InvalidConfigurationException.class,
                    () -> alter(admin, topic, "no.such.setting", "1", AlterConfigOp.OpType.SET));
            refused(
                    UnknownTopicOrPartitionException.class,
                    () -> entry(admin, new ConfigResource(ConfigResource.Type.TOPIC, name + "-none"), "retention.ms"));

            String node = admin.describeCluster().nodes().get().iterator().next().idString();
            Config broker = config(admin, new ConfigResource(ConfigResource.Type.BROKER, node));
            check(!broker.entries().isEmpty(), "the broker shows no setting");
            return broker.entries().size() + " settings of the broker";
        }
    }

    private static Config config(Admin admin, ConfigResource of) throws Exception {
        return admin.describeConfigs(List.of(of)).all().get().get(of);
    }

    private static ConfigEntry entry(Admin admin, ConfigResource of, String name) throws Exception {
        return config(admin, of).get(name);
    }

    private static void alter(Admin admin, ConfigResource of, String name, String value, AlterConfigOp.OpType how)
            throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), how);
        admin.incrementalAlterConfigs(Map.of(of, List.of(change))).all().get();
    }

    /** The head of a partition is cut off, up to an offset and up to the end. */
    static String deleteRecords() throws Exception {
        String name = Clients.topic("delete-records", 1);
        TopicPartition partition = new TopicPartition(name, 0);
        try (Admin admin = admin();
                Producer<String, String> producer = Clients.producer(Map.of())) {
            Clients.put(producer, name, 0, "0", "1", "2", "3", "4");
            same(3L, cut(admin, partition, 3), "low watermark");
            same(3L, offset(admin, partition, OffsetSpec.earliest()), "earliest offset");
            same(5L, offset(admin, partition, OffsetSpec.latest()), "latest offset");
            same(List.of("3", "4"), Clients.read(Clients.COMMITTED, name, 0), "what is left");
            same(3L, cut(admin, partition, 1), "an offset below changes nothing");
            refused(org.apache.kafka.common.errors.OffsetOutOfRangeException.class, () -> cut(admin, partition, 6));
            same(5L, cut(admin, partition, -1), "low watermark at the end");
            same(List.of(), Clients.read(Clients.COMMITTED, name, 0), "nothing is left");
            try (Consumer<String, String> strict = Clients.consumer(Map.of("auto.offset.reset", "none"))) {
                strict.assign(List.of(partition));
                strict.seek(partition, 2);
                refused(OffsetOutOfRangeException.class, () -> {
                    for (int n = 0; n < 20; n++) {
                        strict.poll(java.time.Duration.ofMillis(500));
                    }
                });
            }
            Clients.put(producer, name, 0, "5");
            same(6L, offset(admin, partition, OffsetSpec.latest()), "offsets go on");
        }
        return "";
    }

    private static long cut(Admin admin, TopicPartition partition, long before) throws Exception {
        return admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(before)))
                .lowWatermarks().get(partition).get().lowWatermark();
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec which) throws Exception {
        return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
    }

    /** Where a partition lies and how large it is. */
    static String logDirs() throws Exception {
        String name = Clients.topic("log-dirs", 2);
        try (Admin admin = admin();
                Producer<String, String> producer = Clients.producer(Map.of())) {
            Clients.put(producer, name, 1, "x".repeat(10_000));
            int node = admin.describeCluster().nodes().get().iterator().next().id();
            Map<String, LogDirDescription> dirs =
                    admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node);
            same(1, dirs.size(), "directories");
            LogDirDescription dir = dirs.values().iterator().next();
            same(null, dir.error(), "error");
            ReplicaInfo empty = dir.replicaInfos().get(new TopicPartition(name, 0));
            ReplicaInfo full = dir.replicaInfos().get(new TopicPartition(name, 1));
            same(0L, empty.size(), "size of a partition without records");
            check(full.size() > 10_000 && full.size() < 11_000, "size of a partition: " + full.size());
            same(0L, full.offsetLag(), "lag");
            check(dir.totalBytes().isPresent() && dir.usableBytes().isPresent(), "the disk's size is not given");
        }
        return "";
    }
}
