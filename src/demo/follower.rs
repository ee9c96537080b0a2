//! A member of a group that follows a topic.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::stage::Stage;
use crate::client::{Cluster, Failure, Isolation, Member, Part, Position, Read, Session, is_over};

/// How often a member says that it is there.
const BEAT: Duration = Duration::from_secs(3);
const OFFSET_OUT_OF_RANGE: i16 = 1;

/// A member of a group that follows a topic.
pub(super) struct Follower {
    cluster: Cluster,
    group: &'static str,
    parts: Vec<Part>,
    isolation: Isolation,
    member: Option<Member>,
    /// Where to read on in each partition that is this member's.
    positions: BTreeMap<Part, i64>,
    session: Session,
    beaten: Instant,
}

impl Follower {
    /// One that will join at its first poll.
    pub(super) async fn new(
        stage: &Stage,
        group: &'static str,
        parts: &[Part],
        isolation: Isolation,
    ) -> Result<Self, Failure> {
        Ok(Self {
            cluster: stage.connect(group).await?,
            group,
            parts: parts.to_vec(),
            isolation,
            member: None,
            positions: BTreeMap::new(),
            session: Session::default(),
            beaten: Instant::now(),
        })
    }

    /// Says that it is there; joins, anew if need be.
    pub(super) async fn keep(&mut self) -> Result<(), Failure> {
        if let Some(member) = &self.member {
            if self.beaten.elapsed() < BEAT {
                return Ok(());
            }
            match self.cluster.heartbeat(member).await {
                Ok(()) => {
                    self.beaten = Instant::now();
                    return Ok(());
                }
                Err(failure) if is_over(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        self.join().await
    }

    /// Joins, for the first time or because the place is lost.
    pub(super) async fn join(&mut self) -> Result<(), Failure> {
        let member = match self.cluster.join(self.group, &self.parts, self.member.as_ref()).await {
            Err(failure) if is_over(&failure) && self.member.is_some() => {
                self.member = None;
                self.cluster.join(self.group, &self.parts, None).await?
            }
            joined => joined?,
        };
        self.beaten = Instant::now();
        self.positions.clear();
        self.session.renew();
        for part in &member.assigned {
            let at = match self.cluster.committed(self.group, part).await? {
                Some(offset) => offset,
                None => self.cluster.offset(part, self.isolation, Position::Start).await?,
            };
            self.positions.insert(part.clone(), at);
        }
        self.member = Some(member);
        Ok(())
    }

    /// What is new, waited for as long as this. Does not go on by itself: see [`Self::advance`].
    pub(super) async fn poll(&mut self, wait: Duration) -> Result<Vec<Read>, Failure> {
        self.keep().await?;
        if self.positions.is_empty() {
            sleep(wait).await;
            return Ok(Vec::new());
        }
        match self.cluster.read_on(&mut self.session, &self.positions, (self.isolation, wait)).await {
            Err(failure) if failure.code() == Some(OFFSET_OUT_OF_RANGE) => {
                self.begin_again().await?;
                Ok(Vec::new())
            }
            read => read,
        }
    }

    /// Old records are gone, or the topic is another one.
    async fn begin_again(&mut self) -> Result<(), Failure> {
        for (part, at) in &mut self.positions {
            *at = self.cluster.offset(part, self.isolation, Position::Start).await?;
        }
        Ok(())
    }

    /// Goes on to behind what was read; says whether that is anywhere else.
    pub(super) fn advance(&mut self, reads: &[Read]) -> bool {
        let mut moved = false;
        for read in reads {
            if let Some(at) = self.positions.get_mut(&read.part) {
                moved |= *at != read.next;
                *at = read.next;
            }
        }
        moved
    }

    /// Stores how far it has come. Whose place is taken learns it at the next poll.
    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        let Some(member) = self.member.as_ref().filter(|_| !self.positions.is_empty()) else {
            return Ok(());
        };
        match self.cluster.commit(member, &self.positions).await {
            Err(failure) if is_over(&failure) => self.join().await,
            done => done,
        }
    }

    /// Gives its place up; the next poll takes one again.
    pub(super) async fn leave(&mut self) -> Result<(), Failure> {
        match self.member.take() {
            Some(member) => self.cluster.leave(&member).await,
            None => Ok(()),
        }
    }

    pub(super) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }
}
