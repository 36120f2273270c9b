//! What hooks do to the service: a restart, a kill, a clock that moves; and what they find and leave.
//!
//! What does not belong here: how keys are kept otherwise.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use super::outages::Outage;
use super::{Book, Fault, Orders, Told, problem};

/// For how many seconds a key is kept.
const WINDOW: u64 = 3600;

/// Counts a request as long as it is under way.
pub(super) struct UnderWay(Orders);

impl UnderWay {
    pub(super) fn begin(orders: &Orders) -> Self {
        orders.book().under_way += 1;
        Self(orders.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.book().under_way -= 1;
        self.0.changed.notify_waiters();
    }
}

impl Orders {
    /// A command that a hook runs.
    pub(crate) fn hook(&self, what: &str) -> String {
        format!("curl --silent --fail --max-time 20 \"{}\"", self.url(&format!("/control/{what}")))
    }

    pub(super) async fn control(&self, uri: &hyper::Uri) -> Told {
        match uri.path() {
            "/control/clock" => {
                let seconds = uri.query().and_then(|query| query.strip_prefix("seconds=")).unwrap_or_default();
                self.book().clock += seconds.parse::<u64>().unwrap();
            }
            "/control/restart" => self.restarted(),
            "/control/power-cut" => self.power_cut(),
            "/control/backup" => self.back_up(),
            "/control/restore" => self.restore(),
            path if path != "/control/kill" => {
                self.book().outage = Outage::named(path.trim_start_matches("/control/"));
                self.changed.notify_waiters();
            }
            _ => {
                let number = self.book().kills + 1;
                // A kill meets either the request that is held for it, or none: chance decides no test.
                self.until(|book| match self.held {
                    Some((_, kill)) if kill == number => book.held,
                    Some(_) | None => book.under_way == 0,
                })
                .await;
                self.book().kills = number;
                self.restarted();
                self.changed.notify_waiters();
            }
        }
        Told { status: 204, kind: "text/plain", headers: Vec::new(), body: String::new() }
    }

    fn restarted(&self) {
        let mut book = self.book();
        match self.fault {
            Fault::RestartForgets => book.records.clear(),
            Fault::KillForgets => book.records.retain(|_, record| record.told.is_some()),
            Fault::EffectsForgotten => *book = Book { clock: book.clock, kills: book.kills, ..Book::default() },
            _ => {}
        }
    }

    pub(super) async fn until(&self, holds: impl Fn(&Book) -> bool) {
        loop {
            let changed = self.changed.notified();
            if holds(&self.book()) {
                return;
            }
            changed.await;
        }
    }

    /// Whether the effect that was just made is the one whose answer never comes.
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some_and(|(effect, _)| self.book().effects == effect)
    }

    /// A right service has written the result together with the effect.
    pub(super) async fn until_killed(&self, name: &str, told: Told) {
        let Some((_, kill)) = self.held else { return };
        {
            let mut book = self.book();
            book.held = true;
            if let Some(record) = book.records.get_mut(name).filter(|_| self.fault != Fault::KillForgets) {
                record.told = Some(told);
            }
        }
        self.changed.notify_waiters();
        self.until(|book| book.kills >= kill).await;
    }

    /// Forgets what is over; what runs is not. The answer where the key outlives its result.
    pub(super) fn expire(&self, book: &mut Book, name: &str) -> Option<Told> {
        let window = match self.fault {
            Fault::WindowShort => WINDOW / 2,
            Fault::WindowLong => WINDOW * 2,
            _ => WINDOW,
        };
        let record = book.records.get(name)?;
        let over = record.told.is_some() || self.is(Fault::RunningExpires);
        if over && book.clock >= record.at + window {
            if self.is(Fault::ResultGone) {
                return Some(problem(410, "result-gone"));
            }
            book.records.remove(name);
        }
        None
    }

    /// Whether a key was used first before the window began.
    pub(super) fn is_too_old(&self, first_sent: Option<String>) -> bool {
        let Some(first_sent) = first_sent else { return true };
        let at = DateTimeParser::new().parse_timestamp(&first_sent).unwrap().as_second();
        let now = Timestamp::now().as_second() + self.book().clock.cast_signed();
        now - at > WINDOW.cast_signed() && !self.is(Fault::FirstSentIgnored)
    }
}
