//! Owns the sessions that connections leave for later ones to resume: TLS 1.3 tickets (RFC 8446 §4.6.1),
//! the last TLS 1.2 session, and the key exchange group the server took.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The sessions of one server, shared by the workers. A run speaks to one server by one name, so names are
/// not looked at. It is locked once or twice for each connection, never for a request.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    tickets: VecDeque<Tls13ClientSessionValue>,
    tls12: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl Tickets {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Each change is whole at once, so that a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.sessions().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.sessions().tls12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.sessions().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut sessions = self.sessions();
        if sessions.tickets.len() == MOST_TICKETS {
            sessions.tickets.pop_front();
        }
        sessions.tickets.push_back(value);
    }

    /// The newest. Most servers give several for each connection, so that tickets pile up, and some
    /// remember only the last few hundred of those they gave: the oldest would not be taken any more.
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions().tickets.pop_back()
    }
}

/// As many connections may be begun at the same time with a ticket each.
const MOST_TICKETS: usize = 4096;
