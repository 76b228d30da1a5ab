//! Owns the expressions of workflows, as far as this repository's use them: `||`, `&&`, `==`, `!=`, `!`, strings, names,
//! and a few functions. Whatever is not known is a failure of the test, never an empty string.

use std::collections::BTreeMap;

use serde_json::Value;

/// Names and their values, such as `inputs.rounds`.
pub(crate) type Names = BTreeMap<String, Value>;

/// The text with each `${{ }}` replaced by its value.
pub(crate) fn filled(text: &str, names: &Names) -> String {
    let mut parts = text.split("${{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once("}}").expect("an expression is closed");
        out += &string(&value(expression, names));
        out += rest;
    }
    out
}

/// The value of an expression, with or without `${{ }}` around it.
pub(crate) fn value(expression: &str, names: &Names) -> Value {
    let inner = expression.trim().trim_start_matches("${{").trim_end_matches("}}");
    let mut reader = Reader { rest: inner.trim(), names };
    let value = reader.either();
    assert!(reader.rest.is_empty(), "`{}` is left of `{expression}`", reader.rest);
    value
}

/// What counts as true.
pub(crate) fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(bool) => *bool,
        Value::String(string) => !string.is_empty(),
        _ => true,
    }
}

/// A value within text.
pub(crate) fn string(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(string) => string.clone(),
        other => other.to_string(),
    }
}

struct Reader<'a> {
    rest: &'a str,
    names: &'a Names,
}

impl Reader<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn either(&mut self) -> Value {
        let mut left = self.both();
        while self.takes("||") {
            let right = self.both();
            left = if truth(&left) { left } else { right };
        }
        left
    }

    fn both(&mut self) -> Value {
        let mut left = self.compared();
        while self.takes("&&") {
            let right = self.compared();
            left = if truth(&left) { right } else { left };
        }
        left
    }

    fn compared(&mut self) -> Value {
        let left = self.single();
        if self.takes("==") {
            Value::Bool(string(&left) == string(&self.single()))
        } else if self.takes("!=") {
            Value::Bool(string(&left) != string(&self.single()))
        } else {
            left
        }
    }

    fn single(&mut self) -> Value {
        if self.takes("!") {
            return Value::Bool(!truth(&self.single()));
        }
        if let Some(rest) = self.rest.strip_prefix('\'') {
            let (literal, rest) = rest.split_once('\'').expect("a string is closed");
            self.rest = rest.trim_start();
            return literal.into();
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        if self.takes("(") { self.call(name) } else { self.named(name) }
    }

    fn named(&self, name: &str) -> Value {
        // What a step may have said and did not is empty, when there is such a step.
        let step = name.split_once(".outputs.").and_then(|(step, _)| self.names.get(step));
        let known = self.names.get(name).or(step).cloned();
        known.unwrap_or_else(|| panic!("`{name}` is not known; there are {:?}", self.names.keys()))
    }

    fn call(&mut self, function: &str) -> Value {
        let mut arguments = Vec::new();
        while !self.takes(")") {
            arguments.push(self.either());
            self.takes(",");
        }
        match (function, &arguments[..]) {
            ("always", []) => Value::Bool(true),
            ("cancelled", []) => Value::Bool(false),
            ("success", []) => self.named("success"),
            ("fromJSON", [text]) => serde_json::from_str(&string(text)).expect("JSON"),
            ("join", [Value::Array(list), between]) => {
                list.iter().map(string).collect::<Vec<_>>().join(&string(between)).into()
            }
            _ => panic!("{function}({arguments:?}) is not known"),
        }
    }
}

#[test]
fn expressions_have_the_values_they_have_on_the_platform() {
    let text = |text: &str| Value::from(text);
    let names = Names::from([
        ("inputs.none".to_owned(), text("")),
        ("inputs.list".to_owned(), text("[\"a\", \"b\"]")),
        ("success".to_owned(), Value::Bool(false)),
    ]);
    let cases = [
        ("inputs.none || 'x'", text("x")),
        ("${{ inputs.list != '' && 'x' || 'y' }}", text("x")),
        ("join(fromJSON(inputs.none || inputs.list), ' ')", text("a b")),
        ("always() && inputs.none == ''", Value::Bool(true)),
        ("!cancelled()", Value::Bool(true)),
        ("success()", Value::Bool(false)),
    ];
    for (expression, expected) in cases {
        assert_eq!(value(expression, &names), expected, "{expression}");
    }
    assert_eq!(filled("<${{ inputs.none }}|${{ inputs.list }}>", &names), "<|[\"a\", \"b\"]>");
}
