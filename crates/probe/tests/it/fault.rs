//! What can be wrong with a service: each fault is alone in its service.
//!
//! What does not belong here: how a service behaves with it (`orders.rs`).

/// The faults, and the list of all of them.
macro_rules! faults {
    ($($name:ident),+ $(,)?) => {
        /// What is wrong with a service. `None` is nothing.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Fault {
            None,
            /// No fault, but a habit: the key counts wherever it stands.
            KeyOfAnyPlace,
            $($name),+
        }

        pub(crate) const FAULTS: &[Fault] = &[$(Fault::$name),+];
    };
}

faults! {
    NoDedup,
    RaceBeforeClaim,
    GlobalKey,
    StoredBeforeCredential,
    FingerprintMissing,
    FingerprintOfNames,
    FingerprintSortsArrays,
    FingerprintThroughFloat,
    FingerprintOfAgent,
    FingerprintWithoutQuery,
    FingerprintOfBytes,
    ValidationKept,
    ValidationAfterEffect,
    InProgressRuns,
    InProgressEmpty,
    InProgressFails,
    InProgressRemembered,
    CallerGoneForgets,
    CallerGoneSticks,
    ReplayLosesLocation,
    ReplayLeaksCookie,
    ReplayEncodedTwice,
    ReplayStatus,
    ReplayWithoutMarker,
    ReplayHasEffect,
    MismatchConflict,
    MismatchRuns,
    MismatchPlain,
    MismatchForgets,
    KeyCut,
    KeyCaseIgnored,
    BodyIsKey,
    BodyWithoutKeyIsKey,
    ThirdTimeRuns,
    LastKeyOnly,
    KeyOfConnection,
    UnauthenticatedRemembered,
    HalfBodyRuns,
    KeyInQuery,
    MissingKeyText,
    RepeatedOnTheWay,
}
