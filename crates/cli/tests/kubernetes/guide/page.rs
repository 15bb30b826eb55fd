//! A page of the guide as what somebody who follows it does, step by step.

/// Programs whose commands are run.
const PROGRAMS: [&str; 4] = ["kubectl", "helm", "metronome", "curl"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command, the line of the page it is on, and what it prints where that is shown.
    Run { line: usize, command: String, shown: Option<String> },
    /// A file to be written, as a comment in its first line names it.
    Write { name: String, text: String },
    /// Objects that an API server is to take.
    Take { line: usize, text: String },
}

impl Step {
    /// Whether there is a scheduler of ours once it is done.
    pub(crate) fn brings_metronome(&self) -> bool {
        matches!(self, Self::Run { command, .. } if installs(command) || command.starts_with("metronome run"))
    }
}

pub(crate) fn installs(command: &str) -> bool {
    ["helm install", "helm upgrade", "metronome install"].iter().any(|word| command.contains(word))
}

/// The steps of a page, in order. Blocks are commands (`sh`), commands with what they print (`console`), and objects
/// (`yaml`); a block of another kind is only looked at.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        // Counted as people count.
        let first = at + 2;
        match kind {
            "sh" => steps.extend(script(first, &block)),
            "console" => steps.extend(session(first, &block)),
            "yaml" => steps.extend(document(first, &block)),
            _ => {
                let command = block.iter().find(|line| is_command(line.trim_start_matches("$ ")));
                assert!(command.is_none(), "line {first}: {command:?} stands in a block that is not run");
            }
        }
    }
    steps
}

fn is_command(line: &str) -> bool {
    PROGRAMS.iter().any(|program| line.split_whitespace().next() == Some(program))
}

/// A line that ends in a backslash goes on in the next.
fn script(first: usize, block: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut command = String::new();
    for (at, line) in block.iter().enumerate() {
        command.push_str(line);
        if let Some(begun) = command.strip_suffix('\\') {
            command.truncate(begun.len());
        } else if !command.trim().is_empty() {
            let command = std::mem::take(&mut command);
            steps.push(Step::Run { line: first + at, command, shown: None });
        }
    }
    steps
}

fn session(first: usize, block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, line) in block.iter().enumerate() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                let (command, shown) = (command.to_owned(), Some(String::new()));
                steps.push(Step::Run { line: first + at, command, shown });
            }
            (None, Some(Step::Run { shown: Some(shown), .. })) => {
                shown.push_str(line);
                shown.push('\n');
            }
            (None, _) => panic!("line {first}: a session begins with a command"),
        }
    }
    steps
}

/// A part of an object is only shown.
fn document(first: usize, block: &[&str]) -> Option<Step> {
    let text = block.join("\n") + "\n";
    let name = block.first()?.strip_prefix("# ").filter(|name| name.ends_with(".yaml"));
    match name {
        Some(name) => Some(Step::Write { name: name.to_owned(), text }),
        None if text.starts_with("apiVersion:") => Some(Step::Take { line: first, text }),
        None => None,
    }
}

/// Whether what was printed is what is shown: `[..]` stands for anything in a line, `...` for any lines, and columns may
/// be wider or narrower.
pub(crate) fn is_as_shown(printed: &str, shown: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.trim_end().lines().map(line).collect()
    };
    lines_match(&words(printed), &words(shown))
}

fn lines_match(printed: &[String], shown: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any == "..." => {
            (0..=printed.len()).any(|from| lines_match(&printed[from..], rest))
        }
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, left)| is_like(line, first) && lines_match(left, rest))
        }
    }
}

fn is_like(line: &str, pattern: &str) -> bool {
    match pattern.split_once("[..]") {
        None => line == pattern,
        Some((begin, rest)) => line.strip_prefix(begin).is_some_and(|left| {
            left.char_indices().map(|(at, _)| at).chain([left.len()]).any(|at| is_like(&left[at..], rest))
        }),
    }
}

#[test]
fn a_page_is_read_as_somebody_who_follows_it_does() {
    let page = "Text\n\n```yaml\n# job.yaml\na: 1\n```\n\n```sh\nkubectl apply \\\n  -f job.yaml\n# why\nls\n```\n\
                ```console\n$ kubectl get tj\nNAME\n$ ls\n```\n```yaml\n  roles: []\n```\n```text\nanything\n```\n";
    let run = |line, command: &str, shown: Option<&str>| Step::Run {
        line,
        command: command.to_owned(),
        shown: shown.map(str::to_owned),
    };
    assert_eq!(
        steps(page),
        [
            Step::Write { name: "job.yaml".to_owned(), text: "# job.yaml\na: 1\n".to_owned() },
            run(10, "kubectl apply   -f job.yaml", None),
            run(11, "# why", None),
            run(12, "ls", None),
            run(15, "kubectl get tj", Some("NAME\n")),
            run(17, "ls", Some("")),
        ]
    );
}

#[test]
#[should_panic(expected = "stands in a block that is not run")]
fn a_command_in_another_block_is_noticed() {
    steps("```text\nkubectl get pods\n```\n");
}

#[test]
fn what_is_shown_may_leave_things_open() {
    assert!(is_as_shown("NAME   AGE\nbert   3s\n", "NAME AGE\nbert  [..]\n"));
    assert!(is_as_shown("a\nb\nc\n", "a\n...\n"));
    assert!(!is_as_shown("a\nb\n", "a\n"));
    assert!(!is_as_shown("bert waits", "bert [..]s!"));
}
