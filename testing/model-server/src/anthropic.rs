//! The Anthropic Messages API.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::api::{Api, Ask, History, ToolResult, fresh_id};
use crate::script::Reply;

pub(crate) const API: Api = Api { route, decode, encode, stream, token_count };

fn route(path: &str) -> Option<Ask> {
    if path.ends_with("/v1/messages") {
        Some(Ask::Reply)
    } else if path.ends_with("/v1/messages/count_tokens") {
        Some(Ask::TokenCount)
    } else {
        None
    }
}

fn decode(_path: &str, body: &Value) -> History {
    let messages = list(&body["messages"]);
    let of_role = |role: &'static str| messages.iter().filter(move |it| it["role"] == role);
    History {
        turns: of_role("assistant").count(),
        opening: of_role("user").next().map(|it| text_of(&it["content"])).unwrap_or_default(),
        results: of_role("user")
            .flat_map(|it| list(&it["content"]))
            .filter(|block| block["type"] == "tool_result")
            .map(tool_result)
            .collect(),
        offers_tools: !list(&body["tools"]).is_empty(),
        streaming: body["stream"] == true,
        model: body["model"].as_str().unwrap_or("scripted").into(),
    }
}

fn encode(reply: &Reply, history: &History) -> Value {
    message(&content(reply), &Value::from(stop_reason(reply)), history)
}

/// Every block as start, one delta, stop: clients accept a delta of any length.
fn stream(reply: &Reply, history: &History) -> String {
    let mut events =
        vec![json!({"type": "message_start", "message": message(&[], &Value::Null, history)})];
    for (index, block) in content(reply).into_iter().enumerate() {
        let (start, delta) = opened(block);
        events.extend([
            json!({"type": "content_block_start", "index": index, "content_block": start}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]);
    }
    events.extend([
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
            "usage": {"output_tokens": 5},
        }),
        json!({"type": "message_stop"}),
    ]);
    events.iter().fold(String::new(), |mut text, event| {
        let name = event["type"].as_str().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(text, "event: {name}\ndata: {event}\n\n");
        text
    })
}

fn token_count() -> Value {
    json!({"input_tokens": 10})
}

fn message(content: &[Value], stop_reason: &Value, history: &History) -> Value {
    json!({
        "id": fresh_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": history.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    })
}

fn content(reply: &Reply) -> Vec<Value> {
    match reply {
        Reply::Text(text) => vec![json!({"type": "text", "text": text})],
        Reply::Calls(calls) => calls
            .iter()
            .map(|call| {
                let id = fresh_id("toolu");
                json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.input})
            })
            .collect(),
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply {
        Reply::Text(_) => "end_turn",
        Reply::Calls(_) => "tool_use",
    }
}

/// A block with its payload taken out, and the delta that carries the payload.
fn opened(mut block: Value) -> (Value, Value) {
    let delta = if block["type"] == "text" {
        json!({"type": "text_delta", "text": std::mem::replace(&mut block["text"], json!(""))})
    } else {
        let input = std::mem::replace(&mut block["input"], json!({}));
        json!({"type": "input_json_delta", "partial_json": input.to_string()})
    };
    (block, delta)
}

fn tool_result(block: &Value) -> ToolResult {
    ToolResult { is_error: block["is_error"] == true, text: text_of(&block["content"]) }
}

/// The text of a `content` field, which is a string or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => {
            let texts: Vec<&str> =
                list(blocks).iter().filter_map(|it| it["text"].as_str()).collect();
            texts.join("\n")
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
