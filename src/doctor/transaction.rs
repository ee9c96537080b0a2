//! A trial: one transaction committed, another aborted, and all of it read back.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::report::Report;
use crate::client::{Cluster, Failure, Isolation, Part, Position, Producer};
use crate::config::HostPort;
use crate::config::flags::Doctor;

/// How long one answer may take, and how long what passes by itself is asked again.
const PATIENCE: Duration = Duration::from_secs(10);
/// The broker ends a transaction that this command has left open.
const TIMEOUT_MS: i32 = 30_000;

/// Names that nobody else uses, and where to ask.
pub(super) struct Trial {
    bootstrap: Vec<HostPort>,
    /// Topic, group and transactional id alike.
    name: String,
    parts: [Part; 2],
}

/// What must be read of the two partitions, in this order.
type Values = Vec<String>;

impl Trial {
    pub(super) fn new(flags: &Doctor) -> Self {
        let name = format!("oncelog-doctor-{:08x}", uuid::Uuid::new_v4().as_fields().0);
        let parts = [Part::new(&name, 0), Part::new(&name, 1)];
        Self { bootstrap: flags.bootstrap.clone(), name, parts }
    }

    /// Runs it, and reports what does not come out as it must.
    pub(super) async fn run(&self, report: &mut Report<'_>) {
        report.heading("a transaction".to_owned());
        if let Err(failure) = self.steps(report).await {
            let sentence = format!("a transaction does not go through: {failure}");
            report.wrong(failure, sentence);
        }
    }

    async fn connect(&self) -> Result<Cluster, Failure> {
        Cluster::connect(&self.bootstrap, "oncelog-doctor", PATIENCE).await
    }

    async fn steps(&self, report: &mut Report<'_>) -> Result<(), Failure> {
        let mut watch = Watch(Instant::now());
        let mut cluster = self.connect().await?;
        cluster.make_topic(&self.name, 2, &[]).await?;
        report.ok(format!("topic {} with two partitions {}", self.name, watch.lap()));
        let mut producer = Producer::transactional(self.connect().await?, &self.name, TIMEOUT_MS).await?;
        report.ok(format!("producer of the same transactional.id {}", watch.lap()));

        self.write(&mut producer, "committed", 1).await?;
        self.expect(&mut cluster, Isolation::ReadCommitted, &[], report).await?;
        report.ok(format!("records in both and an offset of the group written {}", watch.lap()));
        producer.end(true).await?;
        report.ok(format!("committed {}", watch.lap()));
        self.write(&mut producer, "aborted", 2).await?;
        producer.end(false).await?;
        report.ok(format!("the same again, aborted {}", watch.lap()));

        self.expect(&mut cluster, Isolation::ReadCommitted, &["committed"], report).await?;
        self.expect(&mut cluster, Isolation::ReadUncommitted, &["committed", "aborted"], report).await?;
        report.ok(format!("read_committed has what was committed, read_uncommitted all {}", watch.lap()));
        let [first, _] = &self.parts;
        match cluster.committed(&self.name, first).await? {
            Some(1) => report.ok(format!("the group's offset is the committed one {}", watch.lap())),
            other => {
                let found = other.map_or("none".to_owned(), |offset| offset.to_string());
                let sentence = format!("offset 1 was committed in a transaction, and the group has {found}");
                report.wrong(format!("the group's offset is {found}, not 1"), sentence);
            }
        }
        Ok(())
    }

    async fn write(&self, producer: &mut Producer, value: &str, offset: i64) -> Result<(), Failure> {
        for part in &self.parts {
            producer.send(part, vec![value.to_owned()]).await?;
        }
        let [first, _] = &self.parts;
        producer.send_offsets(&self.name, None, &[(first.clone(), offset)]).await
    }

    /// Reads both partitions from their start to their end.
    async fn expect(
        &self,
        cluster: &mut Cluster,
        isolation: Isolation,
        want: &[&str],
        report: &mut Report<'_>,
    ) -> Result<(), Failure> {
        for part in &self.parts {
            let found = read_all(cluster, part, isolation).await?;
            if found != want {
                let level = match isolation {
                    Isolation::ReadCommitted => "read_committed",
                    Isolation::ReadUncommitted => "read_uncommitted",
                };
                let what = format!("{level} is shown {found:?} of partition {}, not {want:?}", part.index);
                report.wrong(&what, format!("transactions are not kept apart: {what}"));
            }
        }
        Ok(())
    }

    /// Removes what was made. What is left says its own name.
    pub(super) async fn clean(&self, report: &mut Report<'_>) {
        let removed = async {
            let mut cluster = self.connect().await?;
            cluster.remove_group(&self.name).await?;
            cluster.remove_topic(&self.name).await
        };
        match removed.await {
            Ok(()) => report.ok("topic and group are removed"),
            Err(failure) => report.note(format!("{} cannot be removed: {failure}", self.name)),
        }
    }
}

async fn read_all(cluster: &mut Cluster, part: &Part, isolation: Isolation) -> Result<Values, Failure> {
    let end = cluster.offset(part, isolation, Position::End).await?;
    let start = cluster.offset(part, isolation, Position::Start).await?;
    let mut from = BTreeMap::from([(part.clone(), start)]);
    let mut values = Values::new();
    while let Some(next) = from.get_mut(part).filter(|next| **next < end) {
        let at = *next;
        for read in cluster.read(&from, isolation, Duration::from_secs(1)).await? {
            values.extend(read.values.into_iter().map(|(_, value)| value));
            from.insert(part.clone(), read.next);
        }
        if from.get(part) == Some(&at) {
            return Err(Failure::Foreign { what: "Fetch", why: format!("nothing comes from offset {at} on") });
        }
    }
    Ok(values)
}

/// When a step began.
struct Watch(Instant);

impl Watch {
    /// How long the step took; the next one begins.
    fn lap(&mut self) -> String {
        let took = self.0.elapsed();
        self.0 = Instant::now();
        format!("({} ms)", took.as_millis())
    }
}
