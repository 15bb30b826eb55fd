//! What a job sends in each iteration, in the core's terms.

use metronome_core::model::profile::{Exchange, Phase, Traffic};
use metronome_core::model::units::{Bandwidth, Duration};
use metronome_core::network::Pattern;

use super::spec::{PhaseSpec, Span, TrafficSpec};

impl TrafficSpec {
    /// As it is written in an annotation.
    pub fn read(text: &str) -> Result<Traffic, String> {
        serde_json::from_str::<Self>(text).map_err(|error| error.to_string())?.traffic()
    }

    /// An error says what is wrong, for whoever wrote it.
    pub fn traffic(&self) -> Result<Traffic, String> {
        let phases = self.phases.iter().map(PhaseSpec::phase).collect::<Result<_, _>>()?;
        let traffic = Traffic::new(time(&self.period)?, phases).map_err(|error| error.to_string())?;
        Pattern::of(Exchange::Phases(&traffic)).map_err(|error| error.to_string())?;
        Ok(traffic)
    }
}

impl PhaseSpec {
    fn phase(&self) -> Result<Phase, String> {
        let rate = self.rate.parse::<Bandwidth>().map_err(|error| error.to_string())?;
        let offset = self.offset.as_ref().map_or(Ok(Duration::ZERO), time)?;
        Ok(Phase { offset, length: time(&self.length)?, rate })
    }
}

fn time(span: &Span) -> Result<Duration, String> {
    span.0.parse::<Duration>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_read_as_it_is_declared() {
        let text = r#"{"period":"210ms","phases":[{"offset":"80ms","length":"60ms","rate":"40Gbps"}]}"#;
        let traffic = TrafficSpec::read(text).unwrap();
        assert_eq!(traffic.period(), Duration::from_millis(210));
        assert_eq!(traffic.phases()[0].rate, Bandwidth(40_000_000_000));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let wrong = |text: &str| TrafficSpec::read(text).unwrap_err();
        assert_eq!(wrong(r#"{"period":"0ms"}"#), "the period must be greater than zero");
        let overlap =
            r#"{"period":"1s","phases":[{"length":"1s","rate":"1Gbps"},{"length":"1ms","rate":"1Gbps"}]}"#;
        assert_eq!(wrong(overlap), "phases 0 and 1 overlap");
        assert!(wrong("soon").starts_with("expected value"));
    }
}
