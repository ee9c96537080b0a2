package conformance;

import java.util.Map;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.util.backoff.FixedBackOff;

/** The application's parts, as its documentation puts them together. */
@Configuration
@EnableKafka
@EnableTransactionManagement
public class Application {
    /** A record that fails is tried this often before it goes to the dead letters. */
    static final int ATTEMPTS = 3;

    @Bean
    KafkaAdmin admin() {
        return new KafkaAdmin(Map.of("bootstrap.servers", Scenarios.BOOTSTRAP));
    }

    @Bean
    KafkaAdmin.NewTopics topics(@Value("${run}") String run) {
        return new KafkaAdmin.NewTopics(
                topic("written-" + run), topic("orders-" + run), topic("orders-" + run + "-dlt"),
                topic("shipped-" + run), topic("batches-" + run), topic("packed-" + run));
    }

    private static NewTopic topic(String name) {
        return TopicBuilder.name(name).partitions(2).replicas(1).build();
    }

    @Bean
    ProducerFactory<String, String> producers(@Value("${run}") String run) {
        Map<String, Object> settings = Map.of("bootstrap.servers", Scenarios.BOOTSTRAP);
        var producers = new DefaultKafkaProducerFactory<>(settings, new StringSerializer(), new StringSerializer());
        producers.setTransactionIdPrefix("spring-" + run + "-");
        return producers;
    }

    @Bean
    KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
        return new KafkaTemplate<>(producers);
    }

    @Bean
    KafkaTransactionManager<String, String> transactions(ProducerFactory<String, String> producers) {
        return new KafkaTransactionManager<>(producers);
    }

    @Bean
    ConsumerFactory<String, String> consumers() {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", Scenarios.BOOTSTRAP, "isolation.level", "read_committed",
                "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", 25);
        return new DefaultKafkaConsumerFactory<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** One record, one transaction; what fails too often is published elsewhere in a transaction of its own. */
    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> oneByOne(
            ConsumerFactory<String, String> consumers,
            KafkaTransactionManager<String, String> transactions,
            KafkaTemplate<String, String> template) {
        var factory = containers(consumers, transactions);
        factory.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<>(
                new DeadLetterPublishingRecoverer(template), new FixedBackOff(0, ATTEMPTS - 1), template, true));
        return factory;
    }

    /** What was polled is one transaction. */
    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> batches(
            ConsumerFactory<String, String> consumers, KafkaTransactionManager<String, String> transactions) {
        var factory = containers(consumers, transactions);
        factory.setBatchListener(true);
        return factory;
    }

    private static ConcurrentKafkaListenerContainerFactory<String, String> containers(
            ConsumerFactory<String, String> consumers, KafkaTransactionManager<String, String> transactions) {
        var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
        factory.setConsumerFactory(consumers);
        factory.setConcurrency(2);
        factory.getContainerProperties().setKafkaAwareTransactionManager(transactions);
        return factory;
    }

    @Bean
    Ledger ledger(KafkaTemplate<String, String> template, @Value("${run}") String run) {
        return new Ledger(template, "written-" + run);
    }

    @Bean
    Listeners listeners(KafkaTemplate<String, String> template, @Value("${run}") String run) {
        return new Listeners(template, run);
    }
}
