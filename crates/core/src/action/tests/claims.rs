//! What a claim is answered in every state. What ends a run is in `ends`.

use crate::action::decide;
use crate::action::tests::catalogue::{DIFFERENT, FROZEN, NOW, SAME, claim, learned, states};
use crate::action::tests::tables::{check, decided};
use crate::claim::Claim;
use crate::time::Now;

const COLUMNS: [&str; 6] = ["same", "different", "unlearned", "learned", "learned-different", "unreadable"];

/// The claim of a column: under the record's rule or another, with its parameters or others.
fn column(name: &str) -> Claim {
    match name {
        "same" => claim("json", SAME),
        "different" => claim("json", DIFFERENT),
        "unlearned" => claim("bytes", SAME),
        "learned" => learned(SAME),
        "learned-different" => learned(DIFFERENT),
        "unreadable" => learned("not json"),
        other => panic!("no column {other}"),
    }
}

const CLAIMS: &str = "
    state                           same                     different     unlearned     learned                  learned-different  unreadable
    absent                          execute:new              execute:new   execute:new   execute:new              execute:new        execute:new
    running.other                   in-progress              mismatch      needs-rule    in-progress              mismatch           mismatch
    running.coupled                 in-progress              mismatch      needs-rule    in-progress              mismatch           mismatch
    running.keyed                   in-progress              mismatch      needs-rule    in-progress              mismatch           mismatch
    lapsed.other                    unknown:lapsed+mark      mismatch      needs-rule    unknown:lapsed+mark      mismatch           mismatch
    lapsed.coupled                  execute:takeover         mismatch      needs-rule    execute:takeover         mismatch           mismatch
    lapsed.keyed                    execute:takeover#3?      mismatch      needs-rule    execute:takeover#3?      mismatch           mismatch
    ended.other                     unknown:lapsed+mark      mismatch      needs-rule    unknown:lapsed+mark      mismatch           mismatch
    ended.coupled                   execute:takeover         mismatch      needs-rule    execute:takeover         mismatch           mismatch
    ended.keyed                     execute:takeover#3?      mismatch      needs-rule    execute:takeover#3?      mismatch           mismatch
    unknown.lapsed                  unknown:lapsed           mismatch      needs-rule    unknown:lapsed           mismatch           mismatch
    unknown.doubted                 unknown:doubted          mismatch      needs-rule    unknown:doubted          mismatch           mismatch
    unknown.answered-without-settle unknown:answered-without-settle mismatch needs-rule  unknown:answered-without-settle mismatch    mismatch
    unknown.window-closed           unknown:window-closed    mismatch      needs-rule    unknown:window-closed    mismatch           mismatch
    unknown.quarantined             unknown:quarantined      mismatch      needs-rule    unknown:quarantined      mismatch           mismatch
    done.owner                      replay                   mismatch      needs-rule    replay                   mismatch           mismatch
    done.operator                   replay                   mismatch      needs-rule    replay                   mismatch           mismatch
    done-refuse.owner               replay                   mismatch      needs-rule    replay                   mismatch           mismatch
    done-refuse.operator            replay                   mismatch      needs-rule    replay                   mismatch           mismatch
    over.owner                      execute:over             execute:over  execute:over  execute:over             execute:over       execute:over
    over.operator                   execute:over             execute:over  execute:over  execute:over             execute:over       execute:over
    refused.owner                   expired                  expired       expired       expired                  expired            expired
    refused.operator                expired                  expired       expired       expired                  expired            expired
    past.owner                      execute:over             execute:over  execute:over  execute:over             execute:over       execute:over
    past.operator                   execute:over             execute:over  execute:over  execute:over             execute:over       execute:over
    spent                           expired                  expired       expired       expired                  expired            expired
    spent-past                      execute:over             execute:over  execute:over  execute:over             execute:over       execute:over
    doubted.keyed                   in-progress              mismatch      needs-rule    in-progress              mismatch           mismatch
    lapsed-doubted.keyed            execute:takeover#3?      mismatch      needs-rule    execute:takeover#3?      mismatch           mismatch
    unknown-doubted.keyed           unknown:window-closed    mismatch      needs-rule    unknown:window-closed    mismatch           mismatch
    closed.keyed                    in-progress              mismatch      needs-rule    in-progress              mismatch           mismatch
    lapsed-closed.keyed             unknown:window-closed+mark mismatch    needs-rule    unknown:window-closed+mark mismatch         mismatch
    unknown-closed.keyed            unknown:window-closed    mismatch      needs-rule    unknown:window-closed    mismatch           mismatch
    spent-closed.keyed              unknown:window-closed+mark mismatch    needs-rule    unknown:window-closed+mark mismatch         mismatch
    done.keyed                      replay                   mismatch      needs-rule    replay                   mismatch           mismatch
    spent-doubted.keyed             execute:takeover#3?      execute:takeover#3? execute:takeover#3? execute:takeover#3? execute:takeover#3? execute:takeover#3?
    over.keyed                      execute:over#4           execute:over#4 execute:over#4 execute:over#4         execute:over#4     execute:over#4
    refused.keyed                   expired                  expired       expired       expired                  expired            expired
    past.keyed                      execute:over#4           execute:over#4 execute:over#4 execute:over#4         execute:over#4     execute:over#4
    spent.keyed                     execute:over#3           execute:over#3 execute:over#3 execute:over#3         execute:over#3     execute:over#3
    spent-refused.keyed             expired                  expired       expired       expired                  expired            expired
    spent-past.keyed                execute:over#3           execute:over#3 execute:over#3 execute:over#3         execute:over#3     execute:over#3
";

#[test]
fn a_claim_in_every_state() {
    check(CLAIMS, &COLUMNS, &states(), |state, name| {
        decided(state.record.as_ref(), decide(state.record.as_ref(), &column(name), Now::at(NOW)))
    });
}

/// While the clock is in doubt nothing expires, and leases lapse all the same.
const IN_CLOCK_DOUBT: &str = "
    state                           same                     different
    absent                          execute:new              execute:new
    running.other                   in-progress              mismatch
    running.coupled                 in-progress              mismatch
    running.keyed                   in-progress              mismatch
    lapsed.other                    unknown:lapsed+mark      mismatch
    lapsed.coupled                  execute:takeover         mismatch
    lapsed.keyed                    execute:takeover#3?      mismatch
    ended.other                     unknown:lapsed+mark      mismatch
    ended.coupled                   execute:takeover         mismatch
    ended.keyed                     execute:takeover#3?      mismatch
    unknown.lapsed                  unknown:lapsed           mismatch
    unknown.doubted                 unknown:doubted          mismatch
    unknown.answered-without-settle unknown:answered-without-settle mismatch
    unknown.window-closed           unknown:window-closed    mismatch
    unknown.quarantined             unknown:quarantined      mismatch
    done.owner                      replay                   mismatch
    done.operator                   replay                   mismatch
    done-refuse.owner               replay                   mismatch
    done-refuse.operator            replay                   mismatch
    over.owner                      replay                   mismatch
    over.operator                   replay                   mismatch
    refused.owner                   replay                   mismatch
    refused.operator                replay                   mismatch
    past.owner                      replay                   mismatch
    past.operator                   replay                   mismatch
    spent                           expired                  expired
    spent-past                      expired                  expired
    doubted.keyed                   in-progress              mismatch
    lapsed-doubted.keyed            execute:takeover#3?      mismatch
    unknown-doubted.keyed           unknown:window-closed    mismatch
    closed.keyed                    in-progress              mismatch
    lapsed-closed.keyed             unknown:window-closed+mark mismatch
    unknown-closed.keyed            unknown:window-closed    mismatch
    spent-closed.keyed              unknown:window-closed+mark mismatch
    done.keyed                      replay                   mismatch
    over.keyed                      replay                   mismatch
    refused.keyed                   replay                   mismatch
    past.keyed                      replay                   mismatch
    spent-doubted.keyed             execute:takeover#3?      execute:takeover#3?
    spent.keyed                     execute:over#3           execute:over#3
    spent-refused.keyed             expired                  expired
    spent-past.keyed                expired                  expired
";

#[test]
fn a_claim_while_the_clock_is_in_doubt() {
    check(IN_CLOCK_DOUBT, &["same", "different"], &states(), |state, name| {
        decided(state.record.as_ref(), decide(state.record.as_ref(), &column(name), FROZEN))
    });
}
