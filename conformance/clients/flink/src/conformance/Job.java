package conformance;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** The job, in a cluster of this process: what comes into one topic goes to another, exactly once. */
final class Job {
    private Job() {}

    /**
     * Input, output, naming strategy, directory of checkpoints, whether to fail once, checkpoint to start from or "".
     * Runs until standard input ends, and is then stopped with a savepoint.
     */
    public static void main(String[] args) throws Exception {
        var env = StreamExecutionEnvironment.getExecutionEnvironment(settings(args[3], args[5]));
        env.setParallelism(2);
        String bootstrap = System.getenv("BOOTSTRAP");
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(bootstrap)
                .setTopics(args[0])
                .setGroupId(args[0])
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("isolation.level", "read_committed")
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(bootstrap)
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(args[1])
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(args[2]))
                .setTransactionalIdPrefix(args[1])
                // Longer than the job may be down, and not longer than the broker allows (C-32).
                .setProperty("transaction.timeout.ms", "300000")
                .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "input").uid("input")
                .map(new Steady(Boolean.parseBoolean(args[4]))).uid("steady")
                .sinkTo(sink).uid("output");
        JobClient job = env.executeAsync("copy");
        job.getJobExecutionResult().exceptionally(failed -> {
            failed.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        while (System.in.read() >= 0) {
            // Only the end says anything.
        }
        job.stopWithSavepoint(true, args[3], SavepointFormatType.CANONICAL).get();
        job.getJobExecutionResult().get();
    }

    private static Configuration settings(String checkpoints, String from) {
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "300ms");
        settings.setString("execution.checkpointing.dir", checkpoints);
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1");
        settings.setString("restart-strategy.fixed-delay.delay", "100ms");
        if (!from.isEmpty()) {
            settings.setString("execution.state-recovery.path", from);
        }
        return settings;
    }

    /** Lets records through slowly enough for checkpoints between them; fails once, between two, if it shall. */
    private static final class Steady implements MapFunction<String, String>, CheckpointListener {
        private static final long serialVersionUID = 1;
        private static final AtomicBoolean FAILED = new AtomicBoolean();
        private static final AtomicLong COMPLETED = new AtomicLong();

        private final boolean fail;
        private int since;

        Steady(boolean fail) {
            this.fail = fail;
        }

        @Override
        public String map(String value) throws InterruptedException {
            Thread.sleep(3);
            since++;
            if (fail && COMPLETED.get() >= 4 && since >= 20 && FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("on purpose");
            }
            return value;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            COMPLETED.incrementAndGet();
            since = 0;
        }
    }
}
