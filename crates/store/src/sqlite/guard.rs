//! What an effect may not do on the writer's connection, enforced by SQLite itself: an authorizer for every statement
//! it prepares, and a veto on every COMMIT that the writer did not start.
//!
//! What does not belong here: what an effect is given to work with (`handle`), and what becomes of it (`coupled`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::fault::failed;
use super::schema::PREFIX;
use crate::error::StoreError;

/// Who speaks over the writer's connection now.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// An effect does.
    effect: AtomicBool,
    /// The writer has started a COMMIT.
    commit: AtomicBool,
    /// The next COMMIT fails.
    #[cfg(test)]
    pub(super) fail_commit: AtomicBool,
}

impl Guard {
    /// Sets the hooks, once for a connection's life: setting an authorizer again would prepare every statement anew.
    pub(super) fn watch(self: &Arc<Self>, conn: &mut Connection) -> Result<(), StoreError> {
        let doing = failed("cannot guard the store's connection");
        let guard = Arc::clone(self);
        conn.authorizer(Some(move |context: AuthContext<'_>| {
            if guard.effect.load(Ordering::Relaxed) && forbidden(&context.action) {
                Authorization::Deny
            } else {
                Authorization::Allow
            }
        }))
        .map_err(&doing)?;
        let guard = Arc::clone(self);
        conn.commit_hook(Some(move || !guard.may_commit())).map_err(&doing)?;
        Ok(())
    }

    fn may_commit(&self) -> bool {
        #[cfg(test)]
        if self.fail_commit.swap(false, Ordering::Relaxed) {
            return false;
        }
        self.commit.load(Ordering::Relaxed)
    }

    /// From now until the answer is dropped, an effect speaks.
    pub(super) fn effect(&self) -> Speaking<'_> {
        self.effect.store(true, Ordering::Relaxed);
        Speaking(&self.effect)
    }

    /// From now until the answer is dropped, the store speaks inside the effect.
    pub(super) fn aside(&self) -> Aside<'_> {
        Aside { effect: &self.effect, before: self.effect.swap(false, Ordering::Relaxed) }
    }

    /// From now until the answer is dropped, a COMMIT is the writer's.
    pub(super) fn commit(&self) -> Speaking<'_> {
        self.commit.store(true, Ordering::Relaxed);
        Speaking(&self.commit)
    }
}

/// Ends with its scope, by a panic too.
pub(super) struct Speaking<'g>(&'g AtomicBool);

impl Drop for Speaking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Ends with its scope, by a panic too: then whoever spoke before speaks again.
pub(super) struct Aside<'g> {
    effect: &'g AtomicBool,
    before: bool,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.effect.store(self.before, Ordering::Relaxed);
    }
}

/// Whether an effect may not do this. SQLite asks for every table that a trigger or view touches, too.
fn forbidden(action: &AuthAction<'_>) -> bool {
    match *action {
        AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Pragma { .. }
        | AuthAction::Unknown { .. } => true,
        AuthAction::Function { function_name } => function_name.eq_ignore_ascii_case("load_extension"),
        AuthAction::CreateTable { table_name }
        | AuthAction::CreateTempTable { table_name }
        | AuthAction::CreateIndex { table_name, .. }
        | AuthAction::CreateTempIndex { table_name, .. }
        | AuthAction::CreateTrigger { table_name, .. }
        | AuthAction::CreateTempTrigger { table_name, .. }
        | AuthAction::CreateVtable { table_name, .. }
        | AuthAction::DropTable { table_name }
        | AuthAction::DropTempTable { table_name }
        | AuthAction::DropIndex { table_name, .. }
        | AuthAction::DropTempIndex { table_name, .. }
        | AuthAction::DropTrigger { table_name, .. }
        | AuthAction::DropTempTrigger { table_name, .. }
        | AuthAction::DropVtable { table_name, .. }
        | AuthAction::AlterTable { table_name, .. }
        | AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name }
        | AuthAction::Read { table_name, .. } => is_ours(table_name),
        AuthAction::CreateView { view_name }
        | AuthAction::CreateTempView { view_name }
        | AuthAction::DropView { view_name }
        | AuthAction::DropTempView { view_name } => is_ours(view_name),
        AuthAction::Select | AuthAction::Recursive | AuthAction::Analyze { .. } | AuthAction::Reindex { .. } => false,
        // What a newer SQLite can do and this version does not know.
        _ => true,
    }
}

fn is_ours(table: &str) -> bool {
    table.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}
