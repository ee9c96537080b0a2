package conformance;

import static conformance.Clients.COMMITTED;
import static conformance.Clients.admin;
import static conformance.Clients.end;
import static conformance.Clients.owner;
import static conformance.Clients.put;
import static conformance.Clients.read;
import static conformance.Scenarios.check;
import static conformance.Scenarios.refused;
import static conformance.Scenarios.same;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;

/** What an operator sees of transactions, and how one is ended from outside. */
final class TransactionAdmin {
    private TransactionAdmin() {}

    /** Ids in three states and the producers of a partition (C-52). */
    static String describe() throws Exception {
        String topic = Clients.topic("transactions", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = admin();
                Producer<String, String> open = owner(topic + "-open");
                Producer<String, String> done = owner(topic + "-done");
                Producer<String, String> idle = owner(topic + "-idle")) {
            done.beginTransaction();
            put(done, topic, 0, "done");
            done.commitTransaction();
            open.beginTransaction();
            put(open, topic, 0, "a", "b");

            TransactionDescription ongoing = described(admin, topic + "-open");
            same(TransactionState.ONGOING, ongoing.state(), "state");
            same(Set.of(partition), ongoing.topicPartitions(), "partitions");
            same(60_000L, ongoing.transactionTimeoutMs(), "timeout");
            check(ongoing.transactionStartTimeMs().isPresent(), "no start time");
            Scenarios.until(
                    "the commit is complete",
                    Duration.ofSeconds(10),
                    () -> described(admin, topic + "-done").state() == TransactionState.COMPLETE_COMMIT);
            same(TransactionState.EMPTY, described(admin, topic + "-idle").state(), "state");
            refused(TransactionalIdNotFoundException.class, () -> described(admin, topic + "-none"));

            same(Set.of(topic + "-open"), listed(admin, topic, TransactionState.ONGOING), "listed as ongoing");
            same(Set.of(topic + "-done"), listed(admin, topic, TransactionState.COMPLETE_COMMIT), "listed as complete");
            same(Set.of(topic + "-idle"), listed(admin, topic, TransactionState.EMPTY), "listed as empty");
            var mine = new ListTransactionsOptions().filterProducerIds(Set.of(ongoing.producerId()));
            same(
                    List.of(topic + "-open"),
                    admin.listTransactions(mine).all().get().stream().map(TransactionListing::transactionalId).toList(),
                    "listed by producer");

            ProducerState state = active(admin, partition, ongoing.producerId());
            same(ongoing.producerEpoch(), state.producerEpoch(), "epoch");
            same(1, state.lastSequence(), "last sequence");
            same(2L, state.currentTransactionStartOffset().orElse(-1), "start of its transaction");
            open.abortTransaction();
            // Apache Kafka answers the abort before this is its state.
            Scenarios.until(
                    "the abort is complete",
                    Duration.ofSeconds(10),
                    () -> described(admin, topic + "-open").state() == TransactionState.COMPLETE_ABORT);
            state = active(admin, partition, ongoing.producerId());
            same(true, state.currentTransactionStartOffset().isEmpty(), "no transaction");
            check(state.coordinatorEpoch().isPresent(), "no coordinator epoch after a marker");
        }
        return "";
    }

    private static TransactionDescription described(Admin admin, String id) throws Exception {
        return admin.describeTransactions(List.of(id)).description(id).get();
    }

    private static Set<String> listed(Admin admin, String prefix, TransactionState state) throws Exception {
        ListTransactionsOptions filter = new ListTransactionsOptions().filterStates(Set.of(state));
        return admin.listTransactions(filter).all().get().stream()
                .map(TransactionListing::transactionalId)
                .filter(id -> id.startsWith(prefix))
                .collect(java.util.stream.Collectors.toSet());
    }

    private static ProducerState active(Admin admin, TopicPartition partition, long producer) throws Exception {
        return admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers().stream()
                .filter(state -> state.producerId() == producer)
                .findFirst()
                .orElseThrow(() -> new AssertionError("producer " + producer + " is not described"));
    }

    /** An operator fences the owner of an id; its transaction is aborted (C-51). */
    static String fenceProducers() throws Exception {
        String topic = Clients.topic("fence-producers", 1);
        try (Admin admin = admin();
                Producer<String, String> old = owner(topic)) {
            old.beginTransaction();
            put(old, topic, 0, "old");
            admin.fenceProducers(List.of(topic)).all().get();
            Scenarios.until("the abort", Duration.ofSeconds(10), () -> end(COMMITTED, topic, 0) == 2);
            refused(ProducerFencedException.class, old::commitTransaction);
        }
        same(List.of(), read(COMMITTED, topic, 0), COMMITTED);
        return "";
    }

    /** An operator ends the transaction of one partition, past the coordinator. */
    static String abortTransaction() throws Exception {
        String topic = Clients.topic("abort-transaction", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = admin();
                Producer<String, String> stuck = owner(topic);
                Producer<String, String> plain = Clients.producer(Map.of())) {
            stuck.beginTransaction();
            put(stuck, topic, 0, "stuck");
            put(plain, topic, 0, "behind");
            same(0L, end(COMMITTED, topic, 0), "last stable offset");
            ProducerState state = admin.describeProducers(List.of(partition)).partitionResult(partition).get()
                    .activeProducers().stream()
                    .filter(one -> one.currentTransactionStartOffset().isPresent())
                    .findFirst()
                    .orElseThrow();
            admin.abortTransaction(new AbortTransactionSpec(
                            partition,
                            state.producerId(),
                            (short) state.producerEpoch(),
                            state.coordinatorEpoch().orElse(0)))
                    .all()
                    .get();
            same(3L, end(COMMITTED, topic, 0), "last stable offset, behind the marker");
            same(List.of("behind"), read(COMMITTED, topic, 0), COMMITTED);
        }
        return "";
    }
}
