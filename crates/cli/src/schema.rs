//! Tests only: whether a document is what its schema in `docs/reference/` says. As much of JSON Schema as those
//! files use; a keyword that is not understood here fails, so that a schema cannot promise what nobody checks.

use serde::Serialize;
use serde_json::Value;

/// Panics unless `document` conforms to `docs/reference/NAME.schema.json`.
#[track_caller]
pub(crate) fn assert_conforms(name: &str, document: &impl Serialize) {
    let path = format!("{}/../../docs/reference/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let schema: Value = serde_json::from_str(&schema).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document = serde_json::to_value(document).unwrap();
    let breaches = Checker { root: &schema }.breaches(&schema, &document, "");
    assert!(breaches.is_empty(), "{name}: {breaches:#?}\n{document:#}");
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn breaches(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let Some(keywords) = schema.as_object() else { return vec![format!("{at}: no schema")] };
        let breaches = keywords.iter().flat_map(|(keyword, says)| match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => Vec::new(),
            "$ref" => self.breaches(self.definition(says), value, at),
            "type" => fails(!has_type(says, value), || format!("{at}: {value} is not of type {says}")),
            "const" => fails(says != value, || format!("{at}: {value} is not {says}")),
            "enum" => fails(!list(says).contains(value), || format!("{at}: {value} is none of {says}")),
            "minimum" => fails(value.as_f64() < says.as_f64(), || format!("{at}: {value} is below {says}")),
            "required" => missing(says, value, at),
            "properties" => self.properties(says, value, at),
            "additionalProperties" => additional(schema, says, value, at),
            "items" => {
                list(value).iter().flat_map(|item| self.breaches(says, item, &format!("{at}[]"))).collect()
            }
            other => vec![format!("{at}: keyword `{other}` is not understood here")],
        });
        breaches.collect()
    }

    fn definition(&self, reference: &Value) -> &Value {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).expect("a reference inside");
        self.root.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in the schema"))
    }

    fn properties(&self, says: &Value, value: &Value, at: &str) -> Vec<String> {
        let known = says.as_object().expect("properties are an object").iter();
        let given = known.filter_map(|(key, schema)| Some((key, schema, value.get(key)?)));
        given.flat_map(|(key, schema, value)| self.breaches(schema, value, &format!("{at}.{key}"))).collect()
    }
}

fn fails(failed: bool, message: impl FnOnce() -> String) -> Vec<String> {
    failed.then(message).into_iter().collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_type(says: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("null") => value.is_null(),
        _ => false,
    };
    if says.is_array() { list(says).iter().any(is) } else { is(says) }
}

fn missing(says: &Value, value: &Value, at: &str) -> Vec<String> {
    let keys = list(says).iter().filter_map(Value::as_str);
    let absent = keys.filter(|key| value.is_object() && value.get(key).is_none());
    absent.map(|key| format!("{at}.{key}: missing")).collect()
}

fn additional(schema: &Value, says: &Value, value: &Value, at: &str) -> Vec<String> {
    assert_eq!(says, false, "only `false` is understood");
    let known = |key: &&String| schema["properties"].get(key.as_str()).is_some();
    let keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
    keys.filter(|key| !known(key)).map(|key| format!("{at}.{key}: not in the schema")).collect()
}

#[test]
fn the_check_can_fail() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": ["number", "null"], "minimum": 0}}
    });
    let breaches = |value: Value| Checker { root: &schema }.breaches(&schema, &value, "");
    assert_eq!(breaches(serde_json::json!({"a": 1.5})), Vec::<String>::new());
    assert_eq!(breaches(serde_json::json!({"b": 1})), [".b: not in the schema", ".a: missing"]);
    assert_eq!(breaches(serde_json::json!({"a": "x"})).len(), 2, "neither a number nor above zero");
    assert_eq!(
        breaches(serde_json::json!([])),
        ["[] is not of type \"object\""].map(|text| format!(": {text}"))
    );
}
