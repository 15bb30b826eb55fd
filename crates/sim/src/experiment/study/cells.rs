//! Figures by cell and policy, and what is committed of them.

use serde_json::{Map, Value};

use super::Study;
use crate::experiment::chart::{self, Bar as Column};
use crate::experiment::judge::{Verdict, judge_cells};
use crate::experiment::write::{json, lines};

/// What one policy came to in one cell. Figures that cannot be are not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub scenario: String,
    pub policy: String,
    pub figures: Vec<(&'static str, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    /// By cell, then policy, both in the order of the definition.
    pub cells: Vec<Cell>,
    /// What was run, in words.
    pub runs: String,
}

impl Cells {
    pub fn judge(&self, study: &Study) -> Vec<Verdict> {
        let figure = |scenario: &str, policy: &str, metric: &str| {
            let of = |cell: &&Cell| cell.scenario == scenario && cell.policy == policy;
            self.cells.iter().find(of)?.figure(metric)
        };
        judge_cells(&study.bars, &self.scenarios(), figure)
    }

    fn scenarios(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.cells.iter().map(|cell| cell.scenario.as_str()).collect();
        names.dedup();
        names
    }

    /// `results.json`: one line for each cell and policy.
    pub fn document(&self, experiment: &str, verdicts: &[Verdict]) -> String {
        format!(
            "{{\n  \"version\": 1,\n  \"experiment\": {},\n  \"runs\": {},\n  \"bars\": [{}],\n  \"cells\": [{}]\n}}\n",
            json(&experiment),
            json(&self.runs),
            lines(verdicts.iter().map(json), "    "),
            lines(self.cells.iter().map(Cell::line), "    "),
        )
    }

    /// File and text of each chart.
    pub fn charts(&self, study: &Study) -> Vec<(String, String)> {
        let drawn = |of: &crate::experiment::Chart| {
            let meant =
                |cell: &str| of.scenarios.is_empty() || of.scenarios.iter().any(|named| named == cell);
            let cells = self.scenarios().into_iter().filter(|cell| meant(cell));
            let groups: Vec<(&str, Vec<Column>)> =
                cells.map(|cell| (cell, self.columns(cell, &of.metric))).collect();
            (of.file.clone(), chart::draw_groups(&of.title, &groups, &format!("{}.", self.runs)))
        };
        study.charts.iter().map(drawn).collect()
    }

    fn columns(&self, scenario: &str, metric: &str) -> Vec<Column<'_>> {
        let of = self.cells.iter().filter(|cell| cell.scenario == scenario);
        of.filter_map(|cell| Some(Column::exact(&cell.policy, cell.figure(metric)?))).collect()
    }

    /// A table for each figure, a row for each cell and a column for each policy: the first row names them.
    pub fn tables(&self) -> Vec<(&'static str, Vec<Vec<String>>)> {
        let mut metrics: Vec<&'static str> = Vec::new();
        for (metric, _) in self.cells.iter().flat_map(|cell| &cell.figures) {
            if !metrics.contains(metric) {
                metrics.push(metric);
            }
        }
        metrics.into_iter().map(|metric| (metric, self.table(metric))).collect()
    }

    fn table(&self, metric: &str) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = vec![vec![metric.to_owned()]];
        for cell in &self.cells {
            if rows.last().is_some_and(|row| row[0] != cell.scenario) {
                rows.push(vec![cell.scenario.clone()]);
            }
            if rows.len() == 2 {
                rows[0].push(cell.policy.clone());
            }
            let value = cell.figure(metric).map_or("–".to_owned(), |value| format!("{value:.3}"));
            rows.last_mut().expect("a row was begun").push(value);
        }
        rows
    }

    /// What stands in the README between its marks.
    pub fn markdown(&self, study: &Study, verdicts: &[Verdict]) -> String {
        let mut parts = vec![format!("{}.", self.runs)];
        parts.extend(self.tables().iter().map(|(_, rows)| markdown_table(rows)));
        parts.extend(study.charts.iter().map(|chart| format!("![{}]({})", chart.title, chart.file)));
        let items: Vec<String> = verdicts.iter().map(|verdict| format!("- {}", verdict.sentence())).collect();
        parts.push(items.join("\n"));
        parts.join("\n\n") + "\n"
    }
}

fn markdown_table(rows: &[Vec<String>]) -> String {
    let mut lines: Vec<String> = rows.iter().map(|cells| format!("| {} |", cells.join(" | "))).collect();
    lines.insert(1, format!("|---{}|", "|---:".repeat(rows[0].len() - 1)));
    lines.join("\n")
}

impl Cell {
    fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
    }

    fn line(&self) -> String {
        let mut fields = Map::new();
        fields.insert("cell".into(), Value::from(self.scenario.as_str()));
        fields.insert("policy".into(), Value::from(self.policy.as_str()));
        fields.extend(self.figures.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        Value::Object(fields).to_string()
    }
}
