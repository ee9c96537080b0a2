package conformance;

import static conformance.Scenarios.scenario;

import java.time.Duration;
import org.apache.kafka.common.utils.AppInfoParser;

/** The Java producer, consumer and admin client, with transactions in the centre. */
public final class Main {
    private Main() {}

    public static void main(String[] args) {
        Scenarios.same(args[0], AppInfoParser.getVersion(), "the version on the class path");
        Scenarios.version("kafka-clients", args[0]);
        Scenarios.limit(Duration.ofSeconds(90));

        scenario("commit", Transactions::commit);
        scenario("abort", Transactions::abort);
        scenario("interleaved", Transactions::interleaved);
        scenario("isolation", Transactions::isolation);
        scenario("offsets", Offsets::moveWithTheTransaction);
        scenario("loop", Offsets::everyRecordOnce);
        scenario("fencing", Owners::fencing);
        scenario("takeover", Owners::takeover);
        scenario("timeout", Owners::timeout);
        scenario("idempotence", Resending::idempotence);
        Resending.whileTheBrokerIsPaused();
        scenario("admin", TopicAdmin::topics);
        scenario("configs", TopicAdmin::configs);
        scenario("delete-records", TopicAdmin::deleteRecords);
        scenario("log-dirs", TopicAdmin::logDirs);
        scenario("groups", GroupAdmin::groups);
        scenario("transactions", TransactionAdmin::describe);
        scenario("fence-producers", TransactionAdmin::fenceProducers);
        scenario("markers", TransactionAdmin::abortTransaction);
        Scenarios.end();
    }
}
