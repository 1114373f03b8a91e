//! Answers DNS queries over UDP and TCP.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use model::{Caller, Transport, Verdict};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::message::{Code, Question, Rejected, TYPE_A};
use crate::core::Core;
use crate::wire::Wire;

/// How long a TCP connection may be idle.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers every datagram.
pub(crate) async fn datagrams(core: &Core, socket: &UdpSocket) {
    // Queries are short; longer ones are truncated and rejected.
    let mut buffer = [0; 1024];
    let Ok(listener) = socket.local_addr() else { return };
    loop {
        tokio::task::consume_budget().await;
        match socket.recv_from(&mut buffer).await {
            Ok((count, end)) => {
                let question = buffer.get(..count).unwrap_or_default();
                let client = Caller { transport: Transport::Udp, end, listener };
                if let Some(reply) = answer(core, question, client).await {
                    // A client that does not get its answer asks again.
                    let _ = socket.try_send_to(&reply, end);
                }
            }
            // Errors of earlier answers that could not be delivered are reported here.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Answers the queries on one connection.
pub(crate) async fn connection(core: &Arc<Core>, mut client: Wire, address: Caller) {
    loop {
        let destination = core.gate.waiting(timeout(PATIENCE, question(&mut client))).await;
        let Ok(Ok(Some(question))) = destination else { return };
        let Some(reply) = answer(core, &question, address).await else { return };
        let length = u16::try_from(reply.len()).unwrap_or(0).to_be_bytes();
        if client.write(&[&length[..], &reply].concat()).await.is_err() {
            return;
        }
    }
}

async fn question(client: &mut Wire) -> Option<BytesMut> {
    loop {
        if let Some([high, low]) = client.buffer.first_chunk() {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if client.buffer.len() >= 2 + length {
                client.buffer.advance(2);
                return Some(client.buffer.split_to(length));
            }
        }
        if client.fill().await.ok()? == 0 {
            return None;
        }
    }
}

/// The answer to one message. For a name that is not allowed it is "no such name", because
/// resolvers would repeat a query that is answered with REFUSED.
async fn answer(core: &Core, bytes: &[u8], client: Caller) -> Option<Vec<u8>> {
    let question = match Question::parse(bytes) {
        Ok(question) => question,
        Err(Rejected::Silent) => return None,
        Err(Rejected::Answer(reply)) => return Some(reply),
    };
    let network = core.rules().network;
    let allowed = question.host.as_ref().ok().filter(|host| {
        host.name().is_some() && policy::look_up(&network, host).verdict == Verdict::Allow
    });
    let Some(host) = allowed.cloned() else {
        core.report_look_up(question.text.clone(), client).await;
        return Some(question.answer(Code::NoSuchName, None));
    };
    if !question.is_about_addresses() {
        return Some(question.answer(Code::NotImplemented, None));
    }
    if question.kind != TYPE_A {
        return Some(question.answer(Code::Fine, None));
    }
    let address = core.book().address(&host);
    let code = if address.is_some() { Code::Fine } else { Code::NoSuchName };
    Some(question.answer(code, address))
}
