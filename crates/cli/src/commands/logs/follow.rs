//! The logs of all members as they are written, until the job is over.

use std::collections::BTreeSet;
use std::pin::pin;

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use metronome_kubernetes::objects::Phase;

use super::members::{self, Member};
use super::print::Printer;
use super::read::{Ended, Reader};
use super::{Logs, unreadable};
use crate::cluster::JobRef;
use crate::failure::Failure;
use crate::reply::Reply;

/// How many lines may wait to be printed before their readers wait, too.
const UNPRINTED: usize = 256;

pub(super) async fn follow(job: &JobRef, args: &Logs, mut printer: Printer) -> Result<Reply, Failure> {
    let mut followers = Followers::new(job, args);
    // Whoever names a member that is none of those there are has made a slip.
    members::chosen(job, args).await?;
    let ours = watcher::Config::default().labels(&members::of_job(job));
    let mut pods = pin!(watcher(job.pods(), ours).default_backoff().applied_objects());
    let mut standing = pin!(job.watch());
    let end = loop {
        tokio::select! {
            Some((member, line)) = followers.lines.recv() => {
                if !printer.print(&member, &line) {
                    return Ok(Reply::nothing());
                }
            }
            Some(Ok(pod)) = pods.next() => {
                followers.meet(Member::of(&pod, args.container.as_deref()));
            }
            Some(Ok(now)) = standing.next() => match now.map(|now| now.status.phase) {
                None => break "is gone",
                Some(Some(Phase::Succeeded)) => break "has succeeded",
                Some(Some(Phase::Failed)) => break "has failed",
                Some(_) => {}
            },
        }
    };
    // Who came and went faster than we were told.
    for member in members::chosen(job, args).await.unwrap_or_default() {
        followers.meet(Some(member));
    }
    followers.print_the_rest(&mut printer).await;
    Ok(Reply::nothing().remarking(format!("{job} {end}")))
}

/// One reader for each container that has started.
struct Followers<'a> {
    job: &'a JobRef,
    args: &'a Logs,
    /// Pods by their uid, with how often their container was started again.
    known: BTreeSet<(String, i32)>,
    waiting: BTreeSet<String>,
    readers: JoinSet<()>,
    to: mpsc::Sender<(Member, String)>,
    lines: mpsc::Receiver<(Member, String)>,
}

impl<'a> Followers<'a> {
    fn new(job: &'a JobRef, args: &'a Logs) -> Self {
        let (to, lines) = mpsc::channel(UNPRINTED);
        let (known, waiting) = (BTreeSet::new(), BTreeSet::new());
        Self { job, args, known, waiting, readers: JoinSet::new(), to, lines }
    }

    fn meet(&mut self, member: Option<Member>) {
        let asked = |member: &Member| self.args.member.as_ref().is_none_or(|name| member.is(name));
        let Some(member) = member.filter(asked) else { return };
        let Some(container) = member.container.clone() else {
            if self.waiting.insert(member.pod.clone()) {
                eprintln!("{member} has not started{}", member.why());
            }
            return;
        };
        if self.known.insert((container.uid.clone(), container.restarts)) {
            let reader = Reader::new(self.job.pods(), member.pod.clone(), container, self.args.how());
            self.readers.spawn(read(reader, member, self.to.clone()));
        }
    }

    async fn print_the_rest(mut self, printer: &mut Printer) {
        drop(self.to);
        while let Some((member, line)) = self.lines.recv().await {
            if !printer.print(&member, &line) {
                return;
            }
        }
    }
}

/// Ends with the container, or when nobody listens any more.
async fn read(mut reader: Reader, member: Member, to: mpsc::Sender<(Member, String)>) {
    loop {
        match reader.next().await {
            Ok(line) => {
                if to.send((member.clone(), line)).await.is_err() {
                    return;
                }
            }
            Err(Ended::Over) => return,
            Err(Ended::Failed(error)) => {
                unreadable(&member, &*error).tell();
                return;
            }
        }
    }
}
