//! What is foreseen of a job, in words: when it starts and ends, and what that rests on.

use metronome_core::engine::forecast::{Forecast, LEAST_GUESS, Length, MOST_EVENTS, Outlook, Stopped};
use metronome_core::model::id::JobId;
use metronome_core::model::units::Instant;

use crate::document::ForecastDocument;
use crate::{count, fact, since_a_beginning};

/// What an outlook says about one job.
#[derive(Clone, Copy, Debug)]
pub struct Foreseen<'a> {
    forecast: &'a Forecast,
    from: Instant,
    stopped: Stopped,
}

impl<'a> Foreseen<'a> {
    /// None for a job that was over when the look ahead was made.
    pub fn of(outlook: &'a Outlook, job: JobId) -> Option<Self> {
        Some(Self { forecast: outlook.job(job)?, from: outlook.from, stopped: outlook.stopped })
    }

    /// When it starts and ends, and what that rests on. A start that has been is left out.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        match self.forecast.start {
            Some(start) if start < self.from => {}
            Some(start) => fact(&mut text, "starts", &self.at(start)),
            None => fact(&mut text, "starts", &self.not_foreseen()),
        }
        if self.forecast.start.is_some() {
            text.push_str(&self.lines_of_end());
        }
        text
    }

    /// The same for a job that runs.
    pub(crate) fn lines_of_end(&self) -> String {
        let mut text = String::new();
        let end = self.forecast.end.map_or_else(|| self.not_foreseen(), |end| self.at(end));
        fact(&mut text, "ends", &end);
        fact(&mut text, "assuming", &self.assumption());
        text
    }

    pub(crate) fn document(&self) -> ForecastDocument {
        let Forecast { start, end, guesses, .. } = *self.forecast;
        let unseen = start.is_none() || end.is_none();
        ForecastDocument {
            made_at_s: self.from.as_secs_f64(),
            start_s: start.map(Instant::as_secs_f64),
            end_s: end.map(Instant::as_secs_f64),
            unknown_lengths: guesses.unknown,
            overdue_jobs: guesses.overdue,
            assuming: self.assumption(),
            not_foreseen: unseen.then(|| self.why_not()),
        }
    }

    fn at(&self, at: Instant) -> String {
        let after = at.since(self.from);
        match since_a_beginning(at) {
            _ if at == self.from => "at once".into(),
            Some(time) => format!("in {after}, {time}"),
            None => format!("in {after}"),
        }
    }

    fn not_foreseen(&self) -> String {
        format!("not foreseen: {}", self.why_not())
    }

    fn why_not(&self) -> String {
        match self.stopped {
            // The look ahead was made for somebody else, who came first.
            Stopped::Seen => "it was not looked for".into(),
            Stopped::NothingMore => "nothing that is known to come lets it in".into(),
            Stopped::TooFar => format!("it lies more than {MOST_EVENTS} events ahead"),
            Stopped::MembersApart => "its members are placed one by one".into(),
        }
    }

    /// What must hold for it to come so.
    fn assumption(&self) -> String {
        let Forecast { length, guesses, .. } = self.forecast;
        let mut parts =
            vec!["nobody else comes, nothing breaks, and jobs take as long as they said".to_owned()];
        if guesses.unknown > 0 {
            let jobs = count(guesses.unknown, "job");
            let taken = format!("as long again as it has, and at least {LEAST_GUESS}");
            parts.push(format!("before it: {jobs} of unknown length, each taken to run {taken}"));
        }
        if guesses.overdue > 0 {
            let jobs = count(guesses.overdue, "job");
            parts.push(format!("before it: {jobs} past the time said, each taken to run a quarter longer"));
        }
        parts.extend(length.and_then(about_itself));
        parts.join("; ")
    }
}

fn about_itself(length: Length) -> Option<String> {
    match length {
        Length::Said => None,
        Length::Measured => Some("it goes on at the pace it reports".into()),
        Length::Overdue => Some("itself past the time said: it is taken to run a quarter longer".into()),
        Length::Guessed => {
            let taken = format!("as long again as it has, and at least {LEAST_GUESS}");
            Some(format!("itself of unknown length: it is taken to run {taken}"))
        }
    }
}
