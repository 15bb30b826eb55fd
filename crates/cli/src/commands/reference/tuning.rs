//! The page about tuning, made from the table.

use std::fmt::Write;

use metronome_core::tuning::{Entry, Origin, Tuning};

const INTRODUCTION: &str = "\
Every number on which a decision depends, with its default. A [Policy](scenario.md#policy) of a scenario overrides \
entries by name:

```yaml
apiVersion: metronome.dev/v1alpha1
kind: Policy
metadata: {name: cautious}
spec:
  base: metronome
  tuning: {predictionTolerance: 0.01}
```

Numbers have no unit, durations have one (`90s`), shares are `0.2` or `20%`. A journal records the overridden entries with the
policy, so a replay decides with the same numbers.

The last column tells where a default comes from:

- *decision 0008*: a record in [docs/design](../design) sets it, after experiments, and states the same value;
- *experiment NAME*: the experiment in [experiments](../../experiments) was run to find it;
- *published*: it belongs to the method of a publication;
- *search budget*: it bounds the work of a decision; smaller values decide faster and find less;
- *judgement*: no experiment compares other values.
";

pub(super) fn page() -> String {
    let mut text = format!("{}# Tuning\n\n{INTRODUCTION}", super::MADE);
    let entries = Tuning::DEFAULT.entries();
    for room in entries.chunk_by(|one, next| one.room == next.room) {
        write!(text, "\n## {}\n\n", room[0].room).expect("a string takes everything");
        text.push_str(
            "| entry | default | unit | from, to | meaning | origin |\n|---|---|---|---|---|---|\n",
        );
        for entry in room {
            writeln!(text, "{}", row(entry)).expect("a string takes everything");
        }
    }
    text
}

fn row(entry: &Entry) -> String {
    let Entry { name, default, unit, least, most, meaning, .. } = entry;
    format!("| `{name}` | {default} | {unit} | {least}, {most} | {meaning} | {} |", origin(entry.origin))
}

fn origin(origin: Origin) -> String {
    match origin {
        Origin::Decision(number) => format!("decision {number:04}"),
        Origin::Experiment(name) => format!("experiment {name}"),
        Origin::Published(work) => format!("published: {work}"),
        Origin::SearchBudget(bounds) => format!("search budget: {bounds}"),
        Origin::Judgement(reason) => format!("judgement: {reason}"),
    }
}
