//! HTTP responses that the proxy itself sends.

use model::Reason;

use super::head::HeadError;
use crate::core::Failure;

/// The response to a successful CONNECT.
pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The response to a client that gets no connection; empty while the run is being stopped.
pub(crate) fn failure(failure: &Failure) -> Vec<u8> {
    match failure {
        Failure::Refused(reason) => refused(reason),
        Failure::Stopping => Vec::new(),
        Failure::Unreachable(why) => message("502 Bad Gateway", &format!("ringwall: {why}\n")),
    }
}

/// The response to a request that cannot be parsed.
pub(crate) fn malformed(error: &HeadError) -> Vec<u8> {
    let status = match error {
        HeadError::TooLong => "431 Request Header Fields Too Large",
        _ => "400 Bad Request",
    };
    message(status, &format!("ringwall: {error}\n"))
}

/// The response when the server's response cannot be parsed.
pub(crate) fn bad_gateway(why: &str) -> Vec<u8> {
    message("502 Bad Gateway", &format!("ringwall: the server sent no valid response: {why}\n"))
}

fn refused(reason: &Reason) -> Vec<u8> {
    let mut text =
        format!("ringwall: {}\nrule: {} ({})\n", reason.text, reason.rule, reason.origin);
    if let Some(instead) = &reason.instead {
        text.push_str(&format!("instead: {instead}\n"));
    }
    message("403 Forbidden", &text)
}

fn message(status: &str, text: &str) -> Vec<u8> {
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: \
         {length}\r\nConnection: close\r\nX-Ringwall: refused\r\n\r\n{text}"
    )
    .into_bytes()
}
