//! What the proxy reports, as violations and events.

use model::{Caller, Host, Reason};
use policy::ViolationAction;
use proxy::{Connection, Refusal};
use sandbox::{Operation, Program, Ruling};

use super::Monitor;
use crate::events::{Class, Event, Violation};
use crate::network::ProxyMessage;

impl Monitor<'_, '_> {
    pub(super) fn refuse_connection(
        &mut self,
        class: Class,
        target: String,
        reason: Reason,
        program: Program,
    ) -> Ruling {
        self.rule(Violation {
            class,
            operation: Operation::Connect,
            path: target,
            program,
            reason: Some(reason),
        })
    }

    /// The same for what the proxy denied.
    fn refuse(&mut self, class: Class, refusal: &Refusal, program: Program) -> Ruling {
        self.learned.connect(&refusal.host, refusal.port);
        let target = format!("{}:{}", refusal.host, refusal.port);
        self.refuse_connection(class, target, refusal.reason.clone(), program)
    }

    /// Tools look names up without wanting to connect. That is denied, and is not a reason to stop
    /// the run unless the policy says so.
    fn looked_up(&mut self, name: String, who: impl Fn() -> Program) -> Ruling {
        let class = match self.setup.loaded.policy.violation.lookups.value {
            ViolationAction::Stop if self.action == ViolationAction::Stop => Class::Stop,
            _ => Class::Deny,
        };
        self.learned.look_up(&name);
        // Resolvers ask for every kind of address, and repeat their queries.
        let known = self.is_reported(Operation::LookUp, &name);
        let program = if known { Program::default() } else { who() };
        let reason = Host::parse(&name).ok().map(|host| policy::look_up(&self.rules, &host));
        let violation =
            Violation { class, operation: Operation::LookUp, path: name, program, reason };
        self.rule(violation)
    }

    /// Handles one message of the proxy, and answers it unless the message ends the run.
    pub(super) fn handle_message(
        &mut self,
        message: &ProxyMessage,
        who: &dyn Fn(&Caller) -> Program,
    ) -> Ruling {
        // A client may have disconnected before it gets its answer.
        match message {
            ProxyMessage::Refused(refusal, answer) => {
                let ruling = self.refuse(self.class(), refusal, who(&refusal.client));
                if ruling == Ruling::Stop {
                    return Ruling::Stop;
                }
                let _ = answer.send(proxy::Answer::Refuse);
            }
            ProxyMessage::LookedUp(name, client, answer) => {
                if self.looked_up(name.clone(), || who(client)) == Ruling::Stop {
                    return Ruling::Stop;
                }
                let _ = answer.send(());
            }
            // The client continues once this is dropped.
            ProxyMessage::Opening { number, client, .. } => {
                self.clients.insert(*number, who(client));
            }
            ProxyMessage::Failed(number) => {
                self.clients.remove(number);
            }
            ProxyMessage::Closed(connection) => self.report_connection(connection),
        }
        Ruling::Continue
    }

    fn report_connection(&mut self, connection: &Connection) {
        let program = self.clients.remove(&connection.number).unwrap_or_default();
        self.emit(Event::Connection {
            run: self.run.clone(),
            host: connection.host.clone(),
            port: connection.port,
            address: connection.address.to_string(),
            route: connection.route.to_string(),
            sent: connection.sent,
            received: connection.received,
            seconds: connection.duration.as_secs_f64(),
            program,
        });
    }

    /// The run is over: reports the connections that were still open, and what was denied last.
    pub(crate) fn close_network(&mut self) {
        let Some(network) = self.network.take() else { return };
        // The first message was handled before.
        let unanswered = std::mem::take(&mut self.unanswered).into_iter().skip(1);
        for message in unanswered.chain(network.close()) {
            match &message {
                ProxyMessage::Refused(refusal, _) => {
                    self.refuse(Class::Deny, refusal, Program::default());
                }
                ProxyMessage::Closed(connection) => self.report_connection(connection),
                ProxyMessage::LookedUp(..)
                | ProxyMessage::Opening { .. }
                | ProxyMessage::Failed(_) => {}
            }
        }
    }
}
