//! The agent of this machine: a process of its own, told who is there and what they may do on links, and asked what it has
//! seen. Jobs run without it as well as with it; whenever it is gone, another is started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration as Time, Instant as Moment};

use metronome_core::engine::Event;
use metronome_core::model::id::NodeId;
use metronome_core::model::profile::{Exchange, Phase, Profile, Traffic, ring_load};
use metronome_core::model::units::{Bandwidth, Duration, Iterations, Share};
use metronome_core::observe::progress::Sample;
use metronome_core::traffic::TrafficPolicy;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::course::Seat;
use super::lanes::Words;
use super::{Told, World};
use crate::cleanup::end_agents;
use crate::clock;
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};

/// So often it is asked what it has seen.
const ASKED_EVERY: Time = Time::from_millis(200);
/// One that ends at once is not started over and over.
const AT_LEAST_BETWEEN_STARTS: Time = Time::from_secs(1);

const PATIENCE: Time = Time::from_millis(300);

/// What headers of packets and frames add.
const WITH_HEADERS: f64 = 1.0084;

/// Nothing is changed by what is less certain.
const SURE_ENOUGH: f64 = 0.8;

/// A profile that was learned beside others is less alike from iteration to iteration, and as right.
const SURE_ENOUGH_BESIDE_OTHERS: f64 = 0.45;

/// A period that differs by less is the same.
const SAME_PERIOD: f64 = 0.02;
const SAME_PERIOD_BESIDE_OTHERS: f64 = 0.05;

/// A period whose bounds are further apart than this part of it is unknown: other jobs may have made every iteration longer.
const UNKNOWN_PERIOD_SPREAD: f64 = 0.1;

/// Decisions then use a period below the upper bound by this part of the distance between both. With the upper bound, jobs that meet in
/// every iteration look as if they lost nothing and get no directive. A rotation that follows is a probe: each job goes first for
/// some iterations, in which the agent sees its period.
const BELOW_UPPER_BOUND: f64 = 0.25;

#[derive(Debug)]
pub(super) struct Agent {
    folder: PathBuf,
    words: Vec<String>,
    token: String,
    process: Option<Child>,
    started: Moment,
    pub(super) restarts: u32,
    asked: Option<Moment>,
    /// What it has seen up to here is known.
    seen: u64,
    said: Words,
}

impl Agent {
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// The word by which members of a job are known: nobody outside can make it up.
    pub(super) fn token_of(&self, job: &str) -> String {
        let mixed = |seed: u64| {
            job.bytes().chain(self.token.bytes()).fold(seed, |mixed, byte| {
                (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
            })
        };
        format!("{:016x}{:016x}", mixed(0xcbf2_9ce4_8422_2325), mixed(0x9e37_79b9_7f4a_7c15))
    }

    fn start(&mut self) -> Result<()> {
        let log = self.folder.join("log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|error| LocalError::file(&log, error))?;
        let errors = log.try_clone().map_err(|error| LocalError::file(&self.folder, error))?;
        let process = Command::new(&self.words[0])
            .args(&self.words[1..])
            .arg("--dir")
            .arg(&self.folder)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|source| LocalError::Spawn { program: self.words[0].clone(), source })?;
        fault::after(FaultPoint::AgentSpawned);
        self.process = Some(process);
        self.started = Moment::now();
        self.seen = 0;
        Ok(())
    }

    fn has_ended(&mut self) -> bool {
        match &mut self.process {
            Some(process) => !matches!(process.try_wait(), Ok(None)),
            None => true,
        }
    }

    fn stop(&mut self) {
        let Some(process) = &mut self.process else { return };
        if let Ok(pid) = i32::try_from(process.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let begin = Moment::now();
        while begin.elapsed() < Time::from_secs(5) {
            if !matches!(process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Time::from_millis(10));
        }
        let _ = process.kill();
        let _ = process.wait();
    }

    /// What it has seen since it was last asked.
    fn ask(&mut self) -> std::io::Result<Vec<Value>> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = format!(
            "GET /v1/observed?after={} HTTP/1.0\r\nHost: agent\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.seen, self.token
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let mut body: Value = serde_json::from_str(body)?;
        if let Some(next) = body["next"].as_u64() {
            self.seen = next;
        }
        Ok(body["observed"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}

/// A count in a document; 0 where there is none.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A number that nobody can guess.
fn secret() -> Result<String> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    let read = File::open(source).and_then(|mut random| random.read_exact(&mut bytes));
    read.map_err(|error| LocalError::file(source, error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl World<'_> {
    pub(super) fn start_agent(&mut self) -> Result<()> {
        let Some(words) = self.setup.programs.agent.clone() else { return Ok(()) };
        let folder = self.folder.agent()?;
        end_agents(&folder);
        let token_file = folder.join("token");
        let known = fs::read_to_string(&token_file).ok().filter(|token| token.len() == 32);
        let token = known.map_or_else(secret, Ok)?;
        fs::write(&token_file, &token).map_err(|error| LocalError::file(&token_file, error))?;
        fault::after(FaultPoint::AgentTokenWritten);
        // Whatever an earlier scheduler has said is older.
        let generation = self.now().0 / 1_000_000;
        let mut agent = Agent {
            folder,
            words,
            token,
            process: None,
            started: Moment::now(),
            restarts: 0,
            asked: None,
            seen: 0,
            said: Words::after(generation),
        };
        agent.start()?;
        self.agent = Some(agent);
        self.changed = true;
        Ok(())
    }

    pub(super) fn stop_agent(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.stop();
        }
        fault::after(FaultPoint::AgentStopped);
    }

    /// Who is there, and what they may do on links.
    pub(super) fn tell_the_agent(&mut self) -> Result<()> {
        let Some(mut agent) = self.agent.take() else { return Ok(()) };
        let now = clock::now();
        agent.said.forget_all_but(|index| self.courses[index].up().is_some());
        let (mut members, mut given) = (Vec::new(), Vec::new());
        for (index, course) in self.courses.iter().enumerate() {
            let (Some(up), Some(id)) = (course.up(), course.id) else { continue };
            let job = self.setup.jobs[index].key();
            let lane = self.engine.traffic_policy(id);
            let turn = agent.said.say(index, lane, now, self.epoch);
            given.push((index, lane));
            let program = &self.setup.jobs[index].programs[usize::from(up.seats[0].role)];
            let servers = up.seats.iter().filter(|seat| self.is_server(index, seat.role)).count();
            for (rank, seat) in up.seats.iter().enumerate() {
                let plug = self.hosts.as_ref().and_then(|hosts| hosts.plugged(seat.number));
                let gate = if program.keeps_turns {
                    "sdk"
                } else if self.rights.freezer {
                    "freeze"
                } else {
                    "none"
                };
                members.push(json!({
                    "job": job,
                    "member": self.name_of(index, seat),
                    "token": agent.token_of(&job),
                    "dir": seat.member.folder(),
                    "counters": plug.as_ref().map(|plug| json!({
                        "netns": plug.host.path(),
                        "interface": seat.number.to_string(),
                        // What is delivered to the member: it has passed the queues of the links.
                        "direction": "sent",
                    })),
                    "freezer": seat.member.group().and_then(|group| group.freezer()),
                    "leads": rank == servers,
                    "sends": self.sends(index, rank, &up.seats),
                    "turn": turn,
                    "gate": gate,
                    "address": plug.as_ref().map(|plug| plug.address),
                }));
            }
        }
        let document = json!({"members": members, "ports": self.ports()});
        let written = crate::state::write(&agent.folder.join("members.json"), &document);
        self.agent = Some(agent);
        self.record_directives(&given);
        fault::after(FaultPoint::AgentTold);
        written
    }

    /// Keeps what each job was told when it differs from what it was told before.
    fn record_directives(&mut self, given: &[(usize, TrafficPolicy)]) {
        let now = self.now();
        for (index, lane) in given {
            let directive = (!lane.is_default()).then(|| json!(lane));
            let directives = &mut self.courses[*index].directives;
            let last = directives.last().and_then(|(_, directive)| directive.as_ref());
            if last != directive.as_ref() {
                directives.push((now, directive));
            }
        }
    }

    /// The bytes that the member who leads sends in each iteration, headers included, where it is known what the job sends:
    /// over the ring or to servers, and to the others on its node.
    fn sends(&self, index: usize, rank: usize, seats: &[Seat]) -> Option<u64> {
        let servers = seats.iter().filter(|seat| self.is_server(index, seat.role)).count();
        if rank != servers {
            return None;
        }
        let nodes: BTreeSet<NodeId> = seats.iter().map(|seat| seat.node).collect();
        let load = if servers > 0 { 1.0 } else { ring_load(nodes.len() as u32) };
        let followers = match servers {
            0 => seats.iter().filter(|seat| seat.node == seats[rank].node).count() - 1,
            _ => 0,
        };
        let reduced = match self.setup.jobs[index].spec.profile.as_ref()?.exchange()? {
            Exchange::Gradients(iteration) => iteration.bytes().0 as f64,
            Exchange::Phases(traffic) => traffic.bytes().0 as f64 / load.max(1.0),
        };
        let scaled = reduced / self.setup.scale.0.get() as f64;
        Some((scaled * (load + followers as f64) * WITH_HEADERS) as u64).filter(|bytes| *bytes > 0)
    }

    fn is_server(&self, index: usize, role: u8) -> bool {
        let kind = self.setup.jobs[index].spec.roles[usize::from(role)].kind;
        kind == metronome_core::model::job::RoleKind::Ps
    }

    fn name_of(&self, index: usize, seat: &Seat) -> String {
        let kind = self.setup.jobs[index].spec.roles[usize::from(seat.role)].kind;
        format!("{}-{}", super::rendezvous::word(kind), seat.index)
    }

    /// Every sending end of a link, and the jobs that cross it.
    fn ports(&self) -> Vec<Value> {
        let Some(hosts) = &self.hosts else { return Vec::new() };
        let mut crossed: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (index, course) in self.courses.iter().enumerate() {
            let Some(up) = course.up() else { continue };
            let job = self.setup.jobs[index].key();
            for (at, seat) in up.seats.iter().enumerate() {
                let has_servers = up.seats.iter().any(|seat| self.is_server(index, seat.role));
                let next = (at + 1) % up.seats.len();
                let others = up.seats.iter().enumerate().filter(|(to, _)| has_servers || *to == next);
                for (_, other) in others {
                    let both = [(seat.number, other.number), (other.number, seat.number)];
                    for link in both.into_iter().flat_map(|(from, to)| hosts.crossed(from, to)) {
                        crossed.entry(link).or_default().insert(job.clone());
                    }
                }
            }
        }
        let port = |port: crate::links::Port| {
            json!({
                "netns": port.namespace.path(),
                "device": port.device,
                "rate_bps": port.rate.0,
                "link": port.link.0,
                "crossed_by": crossed.get(&port.link),
            })
        };
        hosts.ports().into_iter().filter(|port| crossed.contains_key(&port.link)).map(port).collect()
    }

    pub(super) fn hear_the_agent(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        if agent.has_ended() && agent.started.elapsed() >= AT_LEAST_BETWEEN_STARTS {
            agent.restarts += 1;
            // Jobs run without an agent; where none can be started it is tried again.
            match agent.start() {
                Ok(()) => (self.tell)(Told::AgentRestarted),
                Err(error) => {
                    agent.started = Moment::now();
                    (self.tell)(Told::Trouble { job: None, what: &format!("cannot {error}") });
                }
            }
        }
        if agent.asked.is_some_and(|asked| asked.elapsed() < ASKED_EVERY) {
            return;
        }
        agent.asked = Some(Moment::now());
        self.changed |= !agent.said.last(clock::now());
        // One that is just starting does not answer yet.
        for seen in agent.ask().unwrap_or_default() {
            self.hear(&seen);
        }
    }

    /// What makes no sense changes nothing.
    fn hear(&mut self, seen: &Value) {
        let kinds = ["progress", "traffic", "slower"];
        let Some(kind) = kinds.into_iter().find(|kind| seen[*kind].is_object()) else { return };
        let about = &seen[kind];
        (self.tell)(Told::Observed { what: seen });
        let Some(key) = about["job"].as_str() else { return };
        let Some(index) = self.setup.jobs.iter().position(|job| job.key() == key) else { return };
        if self.courses[index].up().is_none() {
            return;
        }
        match kind {
            "progress" => self.hear_progress(index, about),
            "traffic" => self.hear_traffic(index, about),
            _ => self.hear_that_it_is_slower(index, about),
        }
    }

    fn hear_that_it_is_slower(&mut self, index: usize, said: &Value) {
        let at_least = said["at_least"].as_f64().filter(|part| part.is_finite()).unwrap_or(0.0);
        if let Some(job) = self.courses[index].id {
            let by = Share((at_least.clamp(0.0, 1.0) * 1e6) as u32);
            self.engine.observe(self.now(), Event::SlowerThanFair { job, by });
        }
    }

    fn hear_progress(&mut self, index: usize, said: &Value) {
        let now = self.now();
        let (Some(job), Some(iterations)) = (self.courses[index].id, said["iteration"].as_u64()) else {
            return;
        };
        if iterations > self.courses[index].tally.iterations {
            self.courses[index].tally.failures = 0;
        }
        self.courses[index].tally.iterations = iterations;
        let loss = said["metrics"]["loss"].as_f64();
        let sample = Sample { at: now, iterations: Iterations(iterations), loss, used: None };
        self.engine.observe(now, Event::Progress { job, sample });
        let took = said["computeSeconds"].as_f64().filter(|seconds| *seconds > 0.0 && seconds.is_finite());
        let member = said["member"].as_str().unwrap_or_default();
        let up = self.courses[index].up().expect("looked at before");
        let seat = up.seats.iter().find(|seat| self.name_of(index, seat) == member);
        if let (Some(seconds), Some(seat)) = (took, seat) {
            let iteration = Duration((seconds * 1e9) as u64);
            let (role, node) = (seat.role, seat.node);
            self.engine.observe(now, Event::MemberTook { job, role, node, iteration });
        }
    }

    /// What was measured of a job counts where it differs from what is known: of a job that had its links to itself as it
    /// is, of any other what it would do without the others.
    fn hear_traffic(&mut self, index: usize, said: &Value) {
        let now = self.now();
        self.courses[index].learned = Some(said.clone());
        let is_alone = said["while"] == "alone";
        let sure = if is_alone { SURE_ENOUGH } else { SURE_ENOUGH_BESIDE_OTHERS };
        let is_sure = said["confidence"].as_f64().is_some_and(|confidence| confidence >= sure);
        let Some(job) = self.courses[index].id.filter(|_| is_sure) else { return };
        let traffic = if is_alone { self.measured_traffic(said) } else { self.uncontended_traffic(said) };
        let Some(traffic) = traffic else { return };
        let same = if is_alone { SAME_PERIOD } else { SAME_PERIOD_BESIDE_OTHERS };
        let known = self.engine.state().jobs.get(job).and_then(|job| job.spec.profile.clone());
        let period = known.as_ref().and_then(|known| known.traffic.as_ref()).map(Traffic::period);
        let is_known =
            |period: Duration| (period.0 as f64 - traffic.period().0 as f64).abs() <= same * period.0 as f64;
        // A model's gradients say more than the traffic they make.
        let says_more = known.as_ref().is_some_and(|known| known.gradients.is_some());
        if says_more || period.is_some_and(is_known) {
            return;
        }
        if let Ok(profile) = Profile::new(Vec::new(), Some(traffic)) {
            self.courses[index].first_used.get_or_insert_with(|| said.clone());
            self.engine.observe(now, Event::LoopMeasured { job, profile: Arc::new(profile) });
        }
    }

    /// Phases as they were measured. The longest pause comes first: a training loop computes, then sends, and its next
    /// iteration begins when all is sent.
    fn measured_traffic(&self, said: &Value) -> Option<Traffic> {
        let phase = |phase: &Value| Phase {
            offset: Duration(number(&phase["offset_ns"])),
            length: Duration(number(&phase["length_ns"])),
            rate: self.setup.scale.measured(Bandwidth(number(&phase["rate_bps"]))),
        };
        let phases: Vec<Phase> = said["phases"].as_array().into_iter().flatten().map(phase).collect();
        Traffic::new(Duration(number(&said["period_ns"])), phases)
            .ok()
            .map(|traffic| traffic.starting_with_longest_pause())
    }

    /// The iteration that a job would have alone: its longest pause, then all its bytes at the rate of the link.
    fn uncontended_traffic(&self, said: &Value) -> Option<Traffic> {
        let alone = said["uncontended"].as_object()?;
        let burst = number(&alone["burst_ns"]);
        let most = number(&alone["period_ns"]);
        let period = expected_period(most, number(&alone["period_at_least_ns"])).max(burst);
        let sends =
            number(&alone["sends_for_ns"]).saturating_sub(most.saturating_sub(period)).clamp(burst, period);
        let rate = self.setup.scale.measured(Bandwidth(number(&alone["rate_bps"])));
        let phases = pulses(sends, burst).map(|(after, length)| Phase {
            offset: Duration(period - sends + after),
            length: Duration(length),
            rate,
        });
        Traffic::new(Duration(period), phases.collect()).ok()
    }
}

/// The period that decisions are made with, between its bounds.
fn expected_period(most: u64, least: u64) -> u64 {
    let apart = most.saturating_sub(least) as f64;
    let is_known = apart <= UNKNOWN_PERIOD_SPREAD * most as f64;
    if is_known { most } else { most - (BELOW_UPPER_BOUND * apart) as u64 }
}

/// A job that sends for longer than its bytes take exchanges its gradients in buckets, during the backward pass. How many and
/// when is not learned, so they are taken as equal and as equally far apart.
const BUCKETS: u64 = 6;

/// A burst that is longer than its bytes take by this part of that has pauses.
const PAUSES: f64 = 0.15;

/// When each part of a burst begins, and how long it lasts: a burst of `sends` nanoseconds, of which `burst` are sent in.
fn pulses(sends: u64, burst: u64) -> impl Iterator<Item = (u64, u64)> {
    let has_pauses = sends as f64 > (1.0 + PAUSES) * burst as f64;
    let count = if has_pauses { BUCKETS } else { 1 };
    let (each, first) = (burst / count, if has_pauses { 0 } else { sends - burst });
    let apart = (sends - first - each) / (count - 1).max(1);
    (0..count).map(move |at| (first + at * apart, each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_whose_bounds_are_far_apart_is_expected_below_the_upper_one() {
        assert_eq!(
            [(205, 205), (205, 190), (308, 168)].map(|(most, least)| expected_period(most, least)),
            [205, 205, 273]
        );
    }

    #[test]
    fn a_burst_without_pauses_is_one_part_and_another_ends_with_its_last_bucket() {
        assert_eq!(pulses(110, 100).collect::<Vec<_>>(), [(10, 100)]);
        let parts: Vec<_> = pulses(160, 60).collect();
        assert_eq!((parts[0], parts[1], parts[5]), ((0, 10), (30, 10), (150, 10)));
        assert_eq!(pulses(0, 0).collect::<Vec<_>>(), [(0, 0)]);
    }
}
