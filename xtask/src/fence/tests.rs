//! The fence can fail, and fails for nothing else.

use super::*;

#[test]
fn each_forbidden_word_is_found() {
    for (word, _) in FORBIDDEN {
        let source = format!("fn f() {{\n    let x = {word} (0);\n}}\n");
        let breaches = breaches_in(&source);
        assert!(
            breaches.iter().any(|breach| breach.starts_with(&format!("2: `{word}`"))),
            "{word}: {breaches:?}"
        );
    }
}

#[test]
fn usual_spellings_of_a_clock_or_a_map_are_found() {
    for line in [
        "use std::time::Instant;",
        "use std::{fmt, time::Instant};",
        "use std::collections::{BTreeMap, HashMap};",
        "let now = std::time::SystemTime::now();",
        "std::thread::spawn(|| ());",
        "let x = rand::random::<u64>();",
        "std::fs::write(path, text)?;",
    ] {
        assert_ne!(breaches_in(line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn comments_and_strings_may_say_anything() {
    let source = r##"
//! No HashMap here, no std::time.
/* println!("x") /* HashSet */ rand */
fn f<'a>(x: &'a str) -> char {
    let _ = "std::fs \" HashMap"; // eprintln!
    let _ = r#"a "raw" HashMap"#;
    let _ = b'"';
    if x == "thread::" { '"' } else { '\'' }
}
"##;
    assert_eq!(breaches_in(source), Vec::<String>::new());
}

#[test]
fn code_after_a_string_or_comment_is_still_seen() {
    let source =
        "let a = \"\\\\\"; use std::fs;\nlet b = '\"'; HashMap\n/* x */ HashSet // y\nlet c = r\"\\\"; rand";
    let lines: Vec<String> =
        breaches_in(source).iter().map(|breach| breach.split("`: ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["1: `std::fs", "2: `HashMap", "3: `HashSet", "4: `rand"]);
}

#[test]
fn longer_words_are_other_words() {
    for line in [
        "let operand = brand;",
        "let threads = 3;",
        "crate::units::Instant",
        "struct MyHashMap;",
        "randomised()",
    ] {
        assert_eq!(breaches_in(line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn the_dependencies_are_exactly_the_allowed_ones() {
    let allowed = "[dependencies]\nindexmap.workspace = true\nserde = \"1\"\nserde_json = { version = \"1\" }\n\
                   # why\nthiserror.workspace = true\n\n[dev-dependencies]\nproptest = \"1\"\n\n[lints]\nworkspace = true\n";
    assert_eq!(dependency_breaches(allowed), Vec::<String>::new());
    let added = allowed.replace("[dev-dependencies]", "rand.workspace = true\n[dev-dependencies]");
    assert_eq!(dependency_breaches(&added), ["Cargo.toml: `rand` is not an allowed dependency"]);
    let table = format!("{allowed}[dependencies.tokio]\nversion = \"1\"\n");
    assert_eq!(dependency_breaches(&table), ["Cargo.toml: `tokio` is not an allowed dependency"]);
    let target = format!("{allowed}[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n");
    assert_eq!(dependency_breaches(&target), ["Cargo.toml: `nix` is not an allowed dependency"]);
    let gone = allowed.replace("indexmap.workspace = true\n", "");
    assert_eq!(dependency_breaches(&gone).len(), 1);
}
