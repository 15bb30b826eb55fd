//! `metronome trainer`

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use metronome_core::model::units::{Bytes, Duration, Share};
use metronome_sim::model;
use metronome_sim::noise::Noise;
use metronome_trainer::{Compute, Curve, Ended, Notes, Place, Saves, Task, train};

use crate::failure::Failure;
use crate::local::stretches;
use crate::reply::Reply;

/// Train as one member of a job: compute as measured, exchange real bytes over TCP, and learn nothing
///
/// Where the others are, and how far the job was, is said by the environment: METRONOME_RANK, METRONOME_PEERS,
/// METRONOME_SERVERS, METRONOME_NODES, METRONOME_CHECKPOINT_DIR. Without any of it one member trains alone.
#[derive(Debug, Args)]
pub(crate) struct Trainer {
    /// A measured model, such as `resnet50/512`; where none is named, METRONOME_TASK says what is to be done
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How many iterations in all
    #[arg(long, value_name = "N", default_value_t = 100)]
    iterations: u64,
    /// Divide the bytes of all gradients by N
    #[arg(long, value_name = "N", default_value_t = 500)]
    scale: u64,
    /// How much compute varies from one iteration to the next, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    noise: f64,
    /// Seed of what varies, the same for all members
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Compute on the processor for as long as was measured, in place of sleeping
    #[arg(long)]
    burn: bool,
    /// Save every so many seconds
    #[arg(long, value_name = "SECONDS")]
    save_every: Option<u64>,
}

pub(crate) fn run(args: &Trainer) -> Result<Reply, Failure> {
    let task = match (&args.model, std::env::var_os("METRONOME_TASK")) {
        (None, Some(file)) => read(Path::new(&file))?,
        (Some(name), _) => args.task(name)?,
        (None, None) => {
            return Err(Failure::input("train nothing").hint("name a model: `--model resnet50/512`"));
        }
    };
    let place = Place::read(|name| std::env::var(name).ok())
        .map_err(|error| Failure::input("take part in a job").because(&error))?;
    let asked_to_leave = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, asked_to_leave.clone())
            .map_err(|error| Failure::world("listen to signals").because(&error))?;
    }
    match train(&task, &place, &asked_to_leave) {
        Ok(Ended::Done { iterations }) => Ok(Reply::text(format!("done after {iterations} iterations\n"))),
        Ok(Ended::Left { iterations }) => {
            Ok(Reply::text(format!("left after {iterations} iterations, as it was asked to\n")))
        }
        Err(error) => Err(Failure::world("train on").because(&error)),
    }
}

fn read(file: &Path) -> Result<Task, Failure> {
    let cannot = || format!("read the task {}", file.display());
    let text = fs::read(file).map_err(|error| Failure::input(cannot()).because(&error))?;
    serde_json::from_slice(&text).map_err(|error| Failure::input(cannot()).because(&error))
}

impl Trainer {
    fn task(&self, name: &str) -> Result<Task, Failure> {
        let model = model::named(name).ok_or_else(|| {
            let known = model::all().iter().map(|model| model.name.as_str());
            let near = metronome_sim::near::nearest(name, known.clone());
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            Failure::input(format!("train `{name}`: there is no such model"))
                .hint(hint.unwrap_or_else(|| format!("known are {}", known.collect::<Vec<_>>().join(", "))))
        })?;
        let mut iteration = model.iteration.clone();
        for bucket in &mut iteration.buckets {
            bucket.bytes = Bytes(bucket.bytes.0 / self.scale.max(1));
        }
        let noise = Noise::Gaussian(Share((self.noise.clamp(0.0, 1.0) * 1e6) as u32));
        Ok(Task {
            iteration,
            iterations: self.iterations,
            stretches: stretches(&noise, self.seed, self.iterations),
            compute: if self.burn {
                Compute::Burns { serial: 1.0, most_cores: 1.0 }
            } else {
                Compute::Sleeps
            },
            learns: Curve::default(),
            saves: Saves { every: self.save_every.map(Duration::from_secs), takes: Duration::ZERO },
            notes: Notes::default(),
        })
    }
}
