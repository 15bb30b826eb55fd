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

/// What the fence says of made-up files.
fn cycles_in(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source { path, text }).collect();
    cycles(&sources, &[])
}

#[test]
fn a_cycle_names_its_files_and_lines() {
    let found = cycles_in(&[
        ("lib.rs", "pub mod decide;\n"),
        ("decide.rs", "mod admit;\nmod place;\nmod size;\nuse admit::admit;\n"),
        ("decide/admit.rs", "//! Admits.\n\nuse super::size::Sizes;\nuse crate::decide::place;\n"),
        ("decide/place.rs", "pub fn place() {}\n"),
        ("decide/size.rs", "fn f() {\n    super::admit::admit();\n}\n"),
    ]);
    let expected = "import cycle in `decide`: admit → size → admit
    src/decide/admit.rs:3: `admit` uses `super::size::Sizes` of `size`
    src/decide/size.rs:2: `size` uses `super::admit::admit` of `admit`";
    assert_eq!(found, [expected]);
}

#[test]
fn a_cycle_between_rooms_is_found_wherever_in_them_its_imports_stand() {
    let found = cycles_in(&[
        ("lib.rs", "mod model;\nmod traffic;\nmod network;\n"),
        ("model.rs", "mod plan;\n"),
        ("model/plan.rs", "use crate::{\n    model,\n    traffic::{\n        circle::Circle,\n    },\n};\n"),
        ("network.rs", "pub(super) fn f(at: crate::model::plan::At) {}\n"),
        ("traffic.rs", "mod circle;\n"),
        ("traffic/circle.rs", "use super::super::network as net;\n"),
    ]);
    let expected = "import cycle: model → traffic → network → model
    src/model/plan.rs:4: `model` uses `crate::traffic::circle::Circle` of `traffic`
    src/network.rs:1: `network` uses `crate::model::plan::At` of `model`
    src/traffic/circle.rs:1: `traffic` uses `super::super::network` of `network`";
    let mut lines: Vec<&str> = found.iter().flat_map(|text| text.lines()).collect();
    lines[1..].sort_unstable();
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn a_name_that_a_parent_passes_on_leads_to_where_it_comes_from() {
    let parent = "mod one;\nmod other;\nuse other::{Other, self as second};\nstruct Own;\n";
    let other = "use crate::one::One;\npub struct Other;\n";
    for (import, is_a_cycle) in [
        ("super::Other", true),
        ("crate::second::Other", true),
        ("super::Own", false),
        ("std::fmt::Other", false),
    ] {
        let one = format!("use {import};\npub struct One;\n");
        let found = cycles_in(&[("lib.rs", parent), ("one.rs", &one), ("other.rs", other)]);
        assert_eq!(!found.is_empty(), is_a_cycle, "{import}: {found:?}");
    }
}

#[test]
fn a_parent_and_its_children_are_no_cycle() {
    let found = cycles_in(&[
        ("lib.rs", "mod draft;\n"),
        ("draft.rs", "mod trial;\nuse trial::Trial;\npub use self::trial::run;\npub struct Draft;\n"),
        (
            "draft/trial.rs",
            "use super::Draft;\nuse crate::draft;\nfn f() -> crate::draft::Draft { self::g() }\n",
        ),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn comments_visibilities_and_tests_import_nothing() {
    let other = ("other.rs", "use crate::one::One;\n");
    for one in [
        "// use crate::other::Other;\n",
        "const TEXT: &str = \"use crate::other::Other;\";\n",
        "pub(in crate::other) struct One;\n",
        "#[cfg(test)]\nmod tests {\n    use crate::other::{Other};\n    fn f() { crate::other::g() }\n}\n",
        "fn f() -> impl Iterator<Item = u8> + use<'_> {}\n",
    ] {
        assert_eq!(cycles_in(&[("lib.rs", ""), ("one.rs", one), other]), Vec::<String>::new(), "{one}");
    }
    let tests = ("one/tests.rs", "use crate::other::Other;\n");
    assert_eq!(cycles_in(&[("lib.rs", ""), ("one.rs", ""), tests, other]), Vec::<String>::new());
    let after_tests = "mod tests {\n    fn f() {}\n}\nuse crate::other::Other;\n";
    assert_eq!(cycles_in(&[("lib.rs", ""), ("one.rs", after_tests), other]).len(), 1);
}

#[test]
fn a_known_import_is_let_through_while_it_closes_a_cycle() {
    let (uses_other, uses_one) = ("use crate::other::{a, b};\n", "use crate::one::One;\n");
    let known = [Known { from: "other", to: "one", why: "records hold states" }];
    let found = |one: &str, other: &str| {
        let sources = [("lib.rs", ""), ("one.rs", one), ("other.rs", other)];
        cycles(&sources.map(|(path, text)| Source { path, text }), &known)
    };
    assert_eq!(found(uses_other, uses_one), Vec::<String>::new());
    for (one, other) in [(uses_other, ""), ("", uses_one), ("", "")] {
        let needless = found(one, other);
        assert_eq!(needless.len(), 1);
        assert!(
            needless[0].contains("from `one` in `other` closes no cycle (records hold states)"),
            "{needless:?}"
        );
    }
}
