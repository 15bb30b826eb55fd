//! The log of one container, line by line. A connection that is cut while the container runs is taken up again where it
//! ended: kubelets number nothing, but they say when each line was written.

use std::pin::Pin;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};

use super::members::{self, Container};

/// How often in a row a log may not be read before it is given up, and the pause between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) follows: bool,
    pub(super) tail: Option<u32>,
}

pub(super) struct Reader {
    pods: Api<Pod>,
    pod: String,
    container: Container,
    how: How,
    stream: Option<Pin<Box<dyn AsyncBufRead + Send>>>,
    /// When the last line was written.
    last: Option<Timestamp>,
    failures: u32,
    /// Its container has ended: what is there is all there will be.
    is_last_look: bool,
}

/// Why there are no more lines.
#[derive(Debug)]
pub(super) enum Ended {
    Over,
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl Reader {
    pub(super) fn new(pods: Api<Pod>, pod: String, container: Container, how: How) -> Self {
        Self { pods, pod, container, how, stream: None, last: None, failures: 0, is_last_look: false }
    }

    pub(super) async fn next(&mut self) -> Result<String, Ended> {
        loop {
            match self.read().await {
                Ok(Some(line)) => {
                    self.failures = 0;
                    if let Some(text) = self.unseen(&line) {
                        return Ok(text);
                    }
                }
                Ok(None) => self.is_cut_off().await?,
                Err(error) => self.try_again(error).await?,
            }
        }
    }

    /// One line with the time at which it was written, or nothing at the end of the stream.
    async fn read(&mut self) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(Box::pin(self.pods.log_stream(&self.pod, &self.params()).await?)),
        };
        let mut line = Vec::new();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    fn params(&self) -> LogParams {
        let is_first = self.last.is_none();
        LogParams {
            container: Some(self.container.name.clone()),
            follow: self.how.follows && !self.is_last_look,
            timestamps: true,
            tail_lines: self.how.tail.filter(|_| is_first).map(i64::from),
            since_time: self.last.map(whole_second),
            ..LogParams::default()
        }
    }

    /// The text of a line, unless it was there before the connection was cut.
    fn unseen(&mut self, line: &str) -> Option<String> {
        let (at, text) = line.split_once(' ').unwrap_or((line, ""));
        let Ok(at) = at.parse::<Timestamp>() else { return Some(line.to_owned()) };
        if self.last.is_some_and(|last| at <= last) {
            return None;
        }
        self.last = Some(at);
        Some(text.to_owned())
    }

    /// The stream has ended: with its container, or before it. Which of the two came first nobody can tell, so that after
    /// the end there is one more look.
    async fn is_cut_off(&mut self) -> Result<(), Ended> {
        self.stream = None;
        if !self.how.follows || self.is_last_look {
            return Err(Ended::Over);
        }
        let pod = match self.pods.get_opt(&self.pod).await {
            Ok(pod) => pod,
            Err(error) => return self.try_again(error.into()).await,
        };
        let now = pod.and_then(|pod| members::started(&pod, Some(&self.container.name)));
        let Some(now) = now.filter(|now| self.container.is_same_run(now)) else { return Err(Ended::Over) };
        match now.is_running {
            // Its end may not have been written yet.
            true => tokio::time::sleep(PAUSE).await,
            false => self.is_last_look = true,
        }
        Ok(())
    }

    async fn try_again(&mut self, error: Box<dyn std::error::Error + Send + Sync>) -> Result<(), Ended> {
        self.stream = None;
        self.failures += 1;
        if !self.how.follows || self.failures >= TRIES {
            return Err(Ended::Failed(error));
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

/// The second in which something happened. API servers are asked in whole seconds: the next one may be that of lines
/// which have not been read, and lines that were read are known again.
fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_nanosecond().div_euclid(1_000_000_000) as i64).unwrap_or(Timestamp::MIN)
}
