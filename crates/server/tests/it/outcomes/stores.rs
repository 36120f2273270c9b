//! What a store can do to the claim, the end and the reads of one action: faults scripted before the first request,
//! and what changes between the requests.

use std::iter;

use counterfoil_store::faulty::{Fault, Faulty, Hold, Method, Rates};
use counterfoil_store::seam::Swapped;
use counterfoil_store::{ErrorKind, MemoryStore};

/// Reads that are let through where faults are drawn.
const READS: usize = 1_000;

/// One behaviour of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Behaviour {
    Works,
    ClaimFails,
    ClaimReplyLost,
    ClaimLost,
    ClaimCopied,
    ClaimNeverAnswered,
    EndFailsOnce,
    EndReplyLost,
    EndLost,
    EndCopied,
    EndFailsToTheDrain,
    FirstReadFails,
    NextReadFails,
}

use Behaviour as B;

impl Behaviour {
    pub(super) const ALL: [Self; 13] = [
        B::Works,
        B::ClaimFails,
        B::ClaimReplyLost,
        B::ClaimLost,
        B::ClaimCopied,
        B::ClaimNeverAnswered,
        B::EndFailsOnce,
        B::EndReplyLost,
        B::EndLost,
        B::EndCopied,
        B::EndFailsToTheDrain,
        B::FirstReadFails,
        B::NextReadFails,
    ];

    /// Whether it is tried with this upstream. Where the claim is given up, which takes seconds, nothing is sent: one
    /// upstream of each class shows that the next request is the first.
    pub(super) fn meets(self, kind: &str) -> bool {
        let classes = ["answers 201", "answers 400", "answers 503", "refuses the connection", "streams events"];
        self != B::ClaimNeverAnswered || classes.contains(&kind)
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            B::Works => "works",
            B::ClaimFails => "fails the claim, writing nothing",
            B::ClaimReplyLost => "writes the claim and loses the reply",
            B::ClaimLost => "loses the claim and writes the repeated one",
            B::ClaimCopied => "loses the claim, writes the repeated one, and gets the lost one before the next request",
            B::ClaimNeverAnswered => "writes the claim and loses every reply until the first caller has its answer",
            B::EndFailsOnce => "fails the end, and takes it once the next caller has its answer",
            B::EndReplyLost => "writes the end and loses the reply",
            B::EndLost => "loses the end and writes the repeated one",
            B::EndCopied => "loses the end, writes the repeated one, and gets the lost one after the next request",
            B::EndFailsToTheDrain => "fails every write after the claim until the server has stopped",
            B::FirstReadFails => "fails the first read",
            B::NextReadFails => "fails the first read of the next request",
        }
    }
}

/// A store that behaves.
pub(super) struct Stage<'s> {
    behaviour: Behaviour,
    store: &'s Faulty<MemoryStore>,
    hold: Hold,
}

impl<'s> Stage<'s> {
    /// Scripts what the first request meets.
    pub(super) fn set(behaviour: Behaviour, store: &'s Faulty<MemoryStore>) -> Self {
        let hold = Hold::new();
        let fail = || Fault::Fail(ErrorKind::Unavailable);
        let draw = |rates| {
            store.script(Method::Read, iter::repeat_n(Fault::Pass, READS));
            store.set_rates(rates);
        };
        match behaviour {
            B::Works | B::NextReadFails => {}
            B::ClaimFails => store.script(Method::Swap, [fail()]),
            B::ClaimReplyLost => store.script(Method::Swap, [Fault::LoseReply]),
            B::ClaimLost | B::ClaimCopied => store.script(Method::Swap, [Fault::ApplyLater]),
            B::ClaimNeverAnswered => draw(Rates { lose_reply: 1_000, ..Rates::default() }),
            B::EndFailsOnce => {
                store.script(Method::Swap, [Fault::Pass, fail(), Fault::HoldBefore(hold.clone())]);
            }
            B::EndReplyLost => store.script(Method::Swap, [Fault::Pass, Fault::LoseReply]),
            B::EndLost | B::EndCopied => store.script(Method::Swap, [Fault::Pass, Fault::ApplyLater]),
            B::EndFailsToTheDrain => {
                store.script(Method::Swap, [Fault::Pass]);
                draw(Rates { fail: 1_000, ..Rates::default() });
            }
            B::FirstReadFails => store.script(Method::Read, [fail()]),
        }
        Self { behaviour, store, hold }
    }

    /// What changes once the first caller has its answer.
    pub(super) async fn before_next(&self) {
        match self.behaviour {
            B::ClaimNeverAnswered => self.store.set_rates(Rates::default()),
            B::ClaimCopied => drop(self.store.land().await),
            B::NextReadFails => self.store.script(Method::Read, [Fault::Fail(ErrorKind::Unavailable)]),
            B::Works
            | B::ClaimFails
            | B::ClaimReplyLost
            | B::ClaimLost
            | B::EndFailsOnce
            | B::EndReplyLost
            | B::EndLost
            | B::EndCopied
            | B::EndFailsToTheDrain
            | B::FirstReadFails => {}
        }
    }

    /// What changes once the next caller has its answer.
    pub(super) async fn after_next(&self) {
        self.hold.release();
        if self.behaviour == B::EndCopied {
            for landed in self.store.land().await {
                assert!(matches!(landed, Ok(Swapped::Lost { .. })), "a late end changed a record: {landed:?}");
            }
        }
    }

    /// What changes once the server has stopped.
    pub(super) fn after_stop(&self) {
        self.store.set_rates(Rates::default());
    }
}
