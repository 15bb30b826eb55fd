//! What a member tells of its progress, over the Unix socket of the agent on its node. Training goes on whether anybody
//! listens or not.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::clock;
use crate::place::Place;

/// More often nobody needs to know.
const EVERY: Duration = Duration::from_millis(500);

const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(crate) struct Telling {
    to: Option<SyncSender<String>>,
    last: Option<Instant>,
}

impl Telling {
    pub(crate) fn of(place: &Place) -> Self {
        let Some(socket) = place.socket.clone() else { return Self::default() };
        let (to, from) = sync_channel(1);
        let token = place.token.clone().unwrap_or_default();
        std::thread::spawn(move || tell_on(&from, &socket, &token));
        Self { to: Some(to), last: None }
    }

    /// Something is told now and then, and `last` things for certain, if anybody listens.
    pub(crate) fn say(
        &mut self,
        place: &Place,
        iteration: u64,
        loss: f64,
        computed: Duration,
        is_last: bool,
    ) {
        let Some(to) = &self.to else { return };
        let now = Instant::now();
        if !is_last && self.last.is_some_and(|last| now - last < EVERY) {
            return;
        }
        self.last = Some(now);
        let said = json!({
            "job": place.job,
            "member": place.member,
            "iteration": iteration,
            "time": clock::now(),
            "metrics": {"loss": loss},
            "computeSeconds": computed.as_secs_f64(),
        });
        if is_last {
            let _ = to.send(said.to_string());
        } else {
            // Whoever has not told the last word yet skips this one.
            let _ = to.try_send(said.to_string());
        }
    }

    /// Waits a little for the last word to be heard.
    pub(crate) fn end(self) {
        let Some(to) = self.to else { return };
        let begin = Instant::now();
        while to.try_send(String::new()).is_err() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn tell_on(from: &Receiver<String>, socket: &std::path::Path, token: &str) {
    loop {
        match from.recv_timeout(Duration::from_secs(3600)) {
            Ok(said) if said.is_empty() => return,
            // Nobody there, or somebody who makes no sense: the next word is tried anew.
            Ok(said) => drop(tell(&said, socket, token)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn tell(said: &str, socket: &std::path::Path, token: &str) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST /v1/progress HTTP/1.1\r\nHost: agent\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        said.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(said.as_bytes())?;
    let mut answer = [0; 256];
    stream.read(&mut answer).map(|_| ())
}
