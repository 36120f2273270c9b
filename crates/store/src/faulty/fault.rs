//! The faults that a call can meet, and how they are drawn from a seed. When they are met belongs to the parent.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::ErrorKind;

/// A call to a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// `read`.
    Read,
    /// `swap`.
    Swap,
    /// `list`.
    List,
    /// `find`.
    Find,
    /// `sweep`.
    Sweep,
    /// `history`.
    History,
    /// `note`.
    Note,
    /// `set_quarantine`.
    SetQuarantine,
    /// `about`.
    About,
}

impl Method {
    /// Every call, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Swap,
        Self::List,
        Self::Find,
        Self::Sweep,
        Self::History,
        Self::Note,
        Self::SetQuarantine,
        Self::About,
    ];

    /// Whether a lost answer leaves open what was written.
    pub(super) const fn writes(self) -> bool {
        match self {
            Self::Swap | Self::Sweep | Self::Note | Self::SetQuarantine => true,
            Self::Read | Self::List | Self::Find | Self::History | Self::About => false,
        }
    }
}

/// What a call meets.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing.
    Pass,
    /// It fails before anything is applied.
    Fail(ErrorKind),
    /// It is applied, and its answer is lost.
    LoseReply,
    /// Its answer is lost, and a swap is applied later: some calls on where faults are drawn, else when
    /// [`Faulty::land`](super::Faulty::land) is called. Any other call is never applied.
    ApplyLater,
    /// It is applied and answered, and a second copy of a swap arrives as late as with [`Fault::ApplyLater`].
    Twice,
    /// It waits to be released, and is applied then.
    HoldBefore(Hold),
    /// It is applied, and its answer waits to be released.
    HoldAfter(Hold),
}

/// A door at which one call waits until a test lets it through. Clones are the same door.
#[derive(Clone, Debug)]
pub struct Hold {
    arrived: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl Hold {
    /// A closed door.
    #[must_use]
    pub fn new() -> Self {
        Self { arrived: Arc::new(Semaphore::new(0)), released: Arc::new(Semaphore::new(0)) }
    }

    /// Returns once a call waits at the door.
    pub async fn arrived(&self) {
        one_of(&self.arrived).await;
    }

    /// Lets one call through, now or when it arrives.
    pub fn release(&self) {
        self.released.add_permits(1);
    }

    pub(super) async fn pass(&self) {
        self.arrived.add_permits(1);
        one_of(&self.released).await;
    }
}

impl Default for Hold {
    fn default() -> Self {
        Self::new()
    }
}

async fn one_of(permits: &Semaphore) {
    // These semaphores are never closed.
    if let Ok(permit) = permits.acquire().await {
        permit.forget();
    }
}

/// How often drawn faults are met, each in a thousand calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// [`Fault::Fail`] as unavailable.
    pub fail: u16,
    /// [`Fault::LoseReply`].
    pub lose_reply: u16,
    /// [`Fault::ApplyLater`], swaps only.
    pub apply_later: u16,
    /// [`Fault::Twice`], swaps only.
    pub twice: u16,
}

/// Faults drawn from a seed.
#[derive(Debug)]
pub(super) struct Draw {
    state: u64,
    rates: Rates,
}

impl Draw {
    pub(super) const fn new(seed: u64, rates: Rates) -> Self {
        Self { state: seed, rates }
    }

    pub(super) const fn set_rates(&mut self, rates: Rates) {
        self.rates = rates;
    }

    /// The next number, by the finaliser of SplitMix64.
    const fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn fault(&mut self, method: Method) -> Option<Fault> {
        let mut left = self.number() % 1_000;
        let swaps_only = |rate: u16| if method == Method::Swap { rate } else { 0 };
        let faults = [
            (self.rates.fail, Fault::Fail(ErrorKind::Unavailable)),
            (self.rates.lose_reply, Fault::LoseReply),
            (swaps_only(self.rates.apply_later), Fault::ApplyLater),
            (swaps_only(self.rates.twice), Fault::Twice),
        ];
        for (rate, fault) in faults {
            match left.checked_sub(u64::from(rate)) {
                None => return Some(fault),
                Some(rest) => left = rest,
            }
        }
        None
    }

    /// How many calls go before a copy; `None` where nothing is drawn.
    pub(super) fn delay(&mut self) -> Option<u8> {
        if self.rates == Rates::default() { None } else { u8::try_from(self.number() % 8).ok() }
    }
}
