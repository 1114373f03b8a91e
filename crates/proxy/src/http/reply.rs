//! The answers that the proxy itself gives in HTTP.

use model::Reason;

use super::head::HeadError;
use crate::core::Failure;

/// The answer that a tunnel stands.
pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// What a client hears that gets no connection. Nothing, if everything is being stopped.
pub(crate) fn failure(failure: &Failure) -> Vec<u8> {
    match failure {
        Failure::Refused(reason) => refused(reason),
        Failure::Stopping => Vec::new(),
        Failure::Unreachable(why) => message("502 Bad Gateway", &format!("ringwall: {why}\n")),
    }
}

/// What a client hears whose request cannot be read.
pub(crate) fn malformed(error: &HeadError) -> Vec<u8> {
    let status = match error {
        HeadError::TooLong => "431 Request Header Fields Too Large",
        _ => "400 Bad Request",
    };
    message(status, &format!("ringwall: {error}\n"))
}

/// What a client hears whose server cannot be understood.
pub(crate) fn bad_gateway(why: &str) -> Vec<u8> {
    message("502 Bad Gateway", &format!("ringwall: the server's answer is not understood: {why}\n"))
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
