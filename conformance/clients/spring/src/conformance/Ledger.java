package conformance;

import java.util.List;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.transaction.annotation.Transactional;

/** A service whose method is a transaction. */
public class Ledger {
    private final KafkaTemplate<String, String> template;
    private final String topic;

    Ledger(KafkaTemplate<String, String> template, String topic) {
        this.template = template;
        this.topic = topic;
    }

    /** Writes all of them to both partitions, and fails at the end if it shall. */
    @Transactional
    public void write(List<String> values, boolean fail) {
        for (String value : values) {
            template.send(topic, 0, null, value);
            template.send(topic, 1, null, value);
        }
        template.flush();
        if (fail) {
            throw new IllegalStateException("on purpose");
        }
    }
}
