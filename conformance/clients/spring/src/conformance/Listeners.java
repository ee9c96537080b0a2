package conformance;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;

/** Consume, process, produce, and fail after producing: what was produced then must not be seen. */
public class Listeners {
    final AtomicInteger failures = new AtomicInteger();
    final AtomicInteger failedBatches = new AtomicInteger();

    private final KafkaTemplate<String, String> template;
    private final String run;
    private final Set<String> tried = ConcurrentHashMap.newKeySet();

    Listeners(KafkaTemplate<String, String> template, String run) {
        this.template = template;
        this.run = run;
    }

    /** Every fifth order fails at its first try, and those that are poison at every one. */
    @KafkaListener(topics = "orders-${run}", groupId = "orders-${run}", containerFactory = "oneByOne")
    void order(ConsumerRecord<String, String> order) {
        template.send("shipped-" + run, order.partition(), null, order.value());
        boolean poison = order.value().startsWith("poison");
        boolean first = tried.add(order.value());
        if (poison || first && order.offset() % 5 == 0) {
            template.flush();
            failures.incrementAndGet();
            throw new IllegalStateException("on purpose");
        }
    }

    /** Each batch fails at its first try, in its middle. */
    @KafkaListener(topics = "batches-${run}", groupId = "batches-${run}", containerFactory = "batches")
    void batch(List<ConsumerRecord<String, String>> batch) {
        ConsumerRecord<String, String> start = batch.get(0);
        boolean first = tried.add("batch " + start.partition() + " " + start.offset());
        for (int n = 0; n < batch.size(); n++) {
            if (first && n == batch.size() / 2) {
                template.flush();
                failedBatches.incrementAndGet();
                throw new IllegalStateException("on purpose");
            }
            ConsumerRecord<String, String> one = batch.get(n);
            template.send("packed-" + run, one.partition(), null, one.value());
        }
    }
}
