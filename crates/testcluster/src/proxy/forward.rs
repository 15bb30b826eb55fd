//! A request's way through the proxy.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::answer::{self, Answer};
use super::class::{Class, Verb};
use super::link::Switch;
use super::rule::{self, Fate, Fault, Rule};
use super::tally::Tally;

pub(super) struct Forwarder {
    upstream: Client,
    pub(super) switch: Switch,
    rules: Mutex<Vec<Rule>>,
    random: Mutex<Pcg64>,
    tallies: Mutex<BTreeMap<Class, Tally>>,
}

/// Serves until it is aborted, and its connections with it.
pub(super) async fn accept(listener: TcpListener, forwarder: Arc<Forwarder>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(serve(stream, Arc::clone(&forwarder)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, forwarder: Arc<Forwarder>) {
    // Small writes of a watch must not wait for one another.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| forwarder.forward(request));
    // An error is what a rule wanted, or a client that went away.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Forwarder {
    pub(super) fn new(upstream: Client, seed: u64) -> Self {
        Self {
            upstream,
            switch: Switch::new(),
            rules: Mutex::default(),
            random: Mutex::new(Pcg64::seed_from_u64(seed)),
            tallies: Mutex::default(),
        }
    }

    pub(super) fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tallies(&self) -> MutexGuard<'_, BTreeMap<Class, Tally>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request; an error closes the connection without a word.
    async fn forward(&self, request: Request<Incoming>) -> io::Result<Answer> {
        let (parts, body) = request.into_parts();
        let class = Class::of(&parts);
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let fate = self.draw(&class);
        let mut link = self.switch.link();
        tokio::time::sleep(fate.delay).await;
        link.open().await;
        let answer = self.carry_out(Request::from_parts(parts, body), &class, fate).await;
        link.open().await;
        answer
    }

    fn draw(&self, class: &Class) -> Fate {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = rule::fate(&mut self.rules(), class, &mut random);
        let mut tallies = self.tallies();
        let tally = tallies.entry(class.clone()).or_default();
        *tally = tally.plus(Tally::of(&fate));
        fate
    }

    async fn carry_out(&self, request: Request<Bytes>, class: &Class, fate: Fate) -> io::Result<Answer> {
        match fate.fault {
            Some(Fault::Answer(code)) => Ok(answer::refusal(code, None)),
            Some(Fault::Busy { retry_after }) => Ok(answer::refusal(429, Some(retry_after))),
            Some(Fault::Drop) => Err(dropped()),
            Some(Fault::LoseAnswer) => self.to_the_end(request).await.and(Err(dropped())),
            Some(Fault::HideAnswer) => self.to_the_end(request).await.map(|()| answer::refusal(500, None)),
            Some(Fault::Delay(_) | Fault::CutWatch { .. }) | None => {
                let answer = self.send(request).await?;
                Ok(match class.verb {
                    Verb::Watch => answer::streamed(answer, self.switch.link(), fate.cut_after),
                    _ => answer::whole(answer),
                })
            }
        }
    }

    async fn to_the_end(&self, request: Request<Bytes>) -> io::Result<()> {
        let answer = self.send(request).await?;
        answer.into_body().collect().await.map(drop).map_err(io::Error::other)
    }

    /// A server that cannot be reached looks the same through a proxy as without: the connection ends.
    async fn send(&self, request: Request<Bytes>) -> io::Result<http::Response<Body>> {
        let (mut parts, body) = request.into_parts();
        parts.headers = answer::end_to_end(parts.headers);
        let request = Request::from_parts(parts, Body::from(body));
        self.upstream.send(request).await.map_err(io::Error::other)
    }
}

fn dropped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was dropped")
}

/// A client has nothing to show.
impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder").field("rules", &self.rules()).field("tallies", &self.tallies()).finish()
    }
}
