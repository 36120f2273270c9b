//! What is done to the shop from outside: the commands of the probe call these paths.
//!
//! What does not belong here: what the shop does afterwards.

use super::{Flaw, Shop, Told, problem};

impl Shop {
    /// `restart`, `kill`, `clock/SECONDS`, `state/NAME`.
    pub(super) async fn control(&self, asked: &str) -> Told {
        let done = Told { status: 204, id: None, body: String::new() };
        match asked.split_once('/').unwrap_or((asked, "")) {
            ("restart", _) => {
                self.forget(Flaw::RestartForgets);
                done
            }
            ("kill", _) => {
                self.somebody_is_held().await;
                self.forget(Flaw::KillForgets);
                if self.is(Flaw::KillForgetsRunning) {
                    self.book().records.retain(|_, record| record.told.is_some());
                }
                self.stage.send_modify(|stage| stage.killed += 1);
                done
            }
            ("clock", seconds) => {
                self.somebody_is_held().await;
                self.book().now += seconds.parse::<u64>().unwrap();
                done
            }
            ("state", "no-such-state") => problem(404, "no-such-state"),
            ("state", state) => {
                self.set(state);
                done
            }
            _ => problem(404, "unknown"),
        }
    }

    /// While requests are held, what is done is done to at least one: no test depends on who comes first.
    async fn somebody_is_held(&self) {
        let ready = |stage: &super::Stage| stage.state != "held" || stage.held > 0;
        drop(self.stage.subscribe().wait_for(ready).await);
    }

    fn forget(&self, flaw: Flaw) {
        if self.is(flaw) {
            self.book().records.clear();
        }
    }

    fn set(&self, state: &str) {
        {
            let mut book = self.book();
            match state {
                "purged" => book.records.values_mut().for_each(|record| record.purged = true),
                "backed-up" => book.put_away = book.records.clone(),
                "restored" => book.records = book.put_away.clone(),
                _ => {}
            }
        }
        if state == "power-cut" {
            self.forget(Flaw::PowerCutForgets);
        }
        self.stage.send_modify(|stage| stage.state = state.to_owned());
    }
}
