//! JSON-RPC 2.0 messages, one a line, as the control socket speaks them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The longest message in either direction, in bytes, its line end included.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// The most calls of one batch.
pub const BATCH_CALLS_MAX: usize = 100;

/// Why a call was answered by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The message is not JSON.
    Parse,
    /// The message is JSON but no call.
    Request,
    /// No such method.
    Method,
    /// The parameters do not fit the method.
    Params,
    /// The server's own fault.
    Internal,
    /// The call was understood and refused; `data` may say more.
    Refused,
    /// It names something that does not exist.
    NotFound,
}

impl FaultKind {
    /// The number on the wire: JSON-RPC's own, and ours from -32000 down.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::Request => -32600,
            Self::Method => -32601,
            Self::Params => -32602,
            Self::Internal => -32603,
            Self::Refused => -32000,
            Self::NotFound => -32001,
        }
    }
}

/// An error as it stands in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// [`FaultKind::code`].
    pub code: i32,
    /// One line for a person.
    pub message: String,
    /// More for a program, such as every error of a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    /// A fault without data.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            code: kind.code(),
            message: message.into(),
            data: None,
        }
    }

    /// Adds data for a program.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The lines of `data.errors`: what a configuration was refused for, each
    /// with file, line and column.
    pub fn findings(&self) -> impl Iterator<Item = &str> {
        let errors = self
            .data
            .as_ref()
            .and_then(|data| data["errors"].as_array());
        let errors = errors.into_iter().flatten();
        errors.filter_map(|error| error["text"].as_str())
    }
}

/// A call to carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What to give back with the answer; `None` asks for no answer.
    pub id: Option<Value>,
    /// The method, such as `config.reload`.
    pub method: String,
    /// Its parameters, by name.
    pub params: Map<String, Value>,
}

impl Call {
    /// A call that wants an answer; `params` is a JSON object, and anything
    /// else is no parameters.
    #[must_use]
    pub fn new(method: &str, mut params: Value) -> Self {
        let params = params.as_object_mut().map(std::mem::take);
        Self {
            id: Some(1.into()),
            method: method.to_owned(),
            params: params.unwrap_or_default(),
        }
    }

    /// The call as one line, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut message = json!({
            "jsonrpc": "2.0",
            "method": self.method,
            "params": self.params,
        });
        if let (Some(id), Some(fields)) = (&self.id, message.as_object_mut()) {
            fields.insert("id".into(), id.clone());
        }
        message.to_string()
    }

    fn from_value(value: Value) -> Result<Self, Fault> {
        let bad = |what: &str| Fault::new(FaultKind::Request, what);
        let Value::Object(mut fields) = value else {
            return Err(bad("a call is a JSON object"));
        };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(bad("jsonrpc must be \"2.0\""));
        }
        let Some(Value::String(method)) = fields.remove("method") else {
            return Err(bad("method must be a string"));
        };
        Ok(Self {
            id: fields.remove("id"),
            method,
            params: params(fields.remove("params"))?,
        })
    }
}

fn params(value: Option<Value>) -> Result<Map<String, Value>, Fault> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(params)) => Ok(params),
        Some(_) => {
            let what = "params are given by name, as an object";
            Err(Fault::new(FaultKind::Request, what))
        }
    }
}

/// One message: a single call, or a batch of them, each fit or not.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A call by itself.
    One(Result<Call, Fault>),
    /// JSON-RPC's batch, answered by an array.
    Batch(Vec<Result<Call, Fault>>),
}

impl Message {
    /// Reads a line.
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        match serde_json::from_slice(line) {
            Err(error) => Self::One(Err(Fault::new(FaultKind::Parse, error.to_string()))),
            Ok(Value::Array(calls)) => Self::batch(calls),
            Ok(value) => Self::One(Call::from_value(value)),
        }
    }

    fn batch(calls: Vec<Value>) -> Self {
        if calls.is_empty() || calls.len() > BATCH_CALLS_MAX {
            let what = format!("a batch has 1 to {BATCH_CALLS_MAX} calls");
            return Self::One(Err(Fault::new(FaultKind::Request, what)));
        }
        Self::Batch(calls.into_iter().map(Call::from_value).collect())
    }
}

/// The answer to a call with that id.
#[must_use]
pub fn answer(id: &Value, outcome: Result<Value, Fault>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(fault) => json!({ "jsonrpc": "2.0", "id": id, "error": fault }),
    }
}

/// Reads an answer's line.
///
/// # Errors
///
/// The fault that it holds, or `Parse` if it is no answer.
pub fn parse_answer(line: &[u8]) -> Result<Value, Fault> {
    let bad = |what: String| Fault::new(FaultKind::Parse, what);
    let mut value: Value = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
    if let Some(error) = value.get_mut("error") {
        return Err(serde_json::from_value(error.take()).unwrap_or_else(|e| bad(e.to_string())));
    }
    let result = value.get_mut("result").map(Value::take);
    result.ok_or_else(|| bad("the answer has neither result nor error".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_fault(line: &[u8]) -> i32 {
        let Message::One(Err(fault)) = Message::parse(line) else {
            panic!("{:?} was taken", String::from_utf8_lossy(line));
        };
        fault.code
    }

    #[test]
    fn a_call_is_read_back_as_it_was_written() {
        let call = Call::new("config.get", json!({"names": ["a"]}));
        let line = call.to_line();
        assert_eq!(Message::parse(line.as_bytes()), Message::One(Ok(call)));
    }

    #[test]
    fn what_is_no_call_is_named_by_json_rpcs_codes() {
        assert_eq!(only_fault(b"{"), -32700);
        assert_eq!(only_fault(b"\xff\xfe"), -32700);
        assert_eq!(only_fault(b"3"), -32600);
        assert_eq!(only_fault(b"[]"), -32600);
        assert_eq!(only_fault(br#"{"method":"a"}"#), -32600);
        assert_eq!(only_fault(br#"{"jsonrpc":"2.0","method":7}"#), -32600);
        let positional = br#"{"jsonrpc":"2.0","method":"a","params":[1]}"#;
        assert_eq!(only_fault(positional), -32600);
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_stack_overflow() {
        let deep = "[".repeat(100_000);
        assert_eq!(only_fault(deep.as_bytes()), -32700);
    }

    #[test]
    fn a_batch_keeps_good_and_bad_calls_apart() {
        let line = br#"[{"jsonrpc":"2.0","method":"a"},1]"#;
        let Message::Batch(calls) = Message::parse(line) else {
            panic!("no batch");
        };
        let fit: Vec<bool> = calls.iter().map(Result::is_ok).collect();
        assert_eq!(fit, [true, false]);
    }

    #[test]
    fn an_answer_gives_the_result_or_the_fault() {
        let good = answer(&json!(1), Ok(json!("x"))).to_string();
        assert_eq!(parse_answer(good.as_bytes()), Ok(json!("x")));
        let fault = Fault::new(FaultKind::NotFound, "no such record").with_data(json!([1]));
        let bad = answer(&json!(1), Err(fault.clone())).to_string();
        assert_eq!(parse_answer(bad.as_bytes()), Err(fault));
        assert!(parse_answer(b"{}").is_err());
    }
}
