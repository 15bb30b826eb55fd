//! All trials of a run: each is printed when it is there, and medians are read off at the end.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::cast::Bill;
use crate::figures::{Figure, Figures, mib};
use crate::scenarios::Scenario;
use crate::schedulers::Scheduler;

#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) scenario: Scenario,
    pub(crate) round: usize,
    pub(crate) scheduler: Scheduler,
    /// With the setting of the stage.
    pub(crate) took: Duration,
    pub(crate) outcome: Result<Figures>,
}

#[derive(Debug, Default)]
pub(crate) struct Results {
    trials: Vec<Trial>,
}

impl Results {
    pub(crate) fn note(&mut self, trial: Trial) {
        println!("{}", trial.line());
        self.trials.push(trial);
    }

    /// How many trials there were of a scheduler in a scenario, and how many of them failed.
    pub(crate) fn tried(&self, scenario: Scenario, scheduler: Scheduler) -> (usize, usize) {
        let trials = || self.of(scenario, scheduler);
        (trials().count(), trials().filter(|trial| trial.outcome.is_err()).count())
    }

    /// The median over the trials that did not fail.
    pub(crate) fn median(&self, scenario: Scenario, scheduler: Scheduler, figure: Figure) -> Option<f64> {
        let values =
            self.of(scenario, scheduler).filter_map(|trial| trial.outcome.as_ref().ok()?.get(figure));
        median(values.collect())
    }

    /// The ratio of the medians of two schedulers; of no use where the rival's is nothing.
    pub(crate) fn ratio(
        &self,
        scenario: Scenario,
        ours: Scheduler,
        rivals: Scheduler,
        figure: Figure,
    ) -> Option<f64> {
        let rivals = self.median(scenario, rivals, figure).filter(|median| *median > 0.0)?;
        Some(self.median(scenario, ours, figure)? / rivals)
    }

    fn of(&self, scenario: Scenario, scheduler: Scheduler) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.scenario == scenario && trial.scheduler == scheduler)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

impl Trial {
    fn line(&self) -> Value {
        let mut line = json!({
            "bench": "cluster",
            "scenario": self.scenario.to_string(),
            "scheduler": self.scheduler.to_string(),
            "round": self.round + 1,
            "trial_s": self.took.as_secs_f64(),
        });
        match &self.outcome {
            Err(error) => line["failed"] = json!(format!("cannot {error:#}")),
            Ok(figures) => {
                for (figure, value) in figures.iter() {
                    line[figure.key()] = json!(value);
                }
                let requests: Map<String, Value> =
                    figures.requests.iter().map(|(kind, count)| (kind.to_owned(), json!(count))).collect();
                line["requests_by_kind"] = Value::Object(requests);
                line["processes"] = processes(&figures.bill);
            }
        }
        line
    }
}

fn processes(bill: &Bill) -> Value {
    let used = bill.iter().map(|(name, usage)| {
        let used = json!({ "cpu_s": usage.cpu.as_secs_f64(), "peak_mib": mib(usage.peak_rss_bytes) });
        (name.clone(), used)
    });
    Value::Object(used.collect())
}
