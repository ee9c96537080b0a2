//! Kafka's bytes: frames, headers, the version table, refusal to code. Knows nothing of our state.
