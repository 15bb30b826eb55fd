//! `metronome` without a command: what to try first

use crate::full_build::INSTALL_COMMAND;
use crate::reply::Reply;

/// The text is an answer, not an error: it goes to standard output, and the exit code is 0, as with `kubectl` and
/// `cargo`.
pub(crate) fn run(program: &str) -> Reply {
    let full_build = match cfg!(feature = "kubernetes") {
        true => String::new(),
        false => format!("  {INSTALL_COMMAND}    # this build leaves it out\n"),
    };
    Reply::text(format!(
        "\
Metronome schedules distributed training jobs on shared clusters.

See what it does, in less than a minute and without a cluster:
  {program} demo

Compare schedulers on a scenario file, in virtual time:
  {program} sim compare -f examples/two-gangs.yaml --policies kubernetes,volcano,metronome

Run the jobs of a scenario file for real on this machine, over shaped links:
  sudo {program} local run -f examples/two-jobs.yaml --policies fair,metronome

Schedule the pods of a Kubernetes cluster (docs/guide/install.md):
{full_build}  {program} install --image IMAGE | kubectl apply --server-side -f -

`{program} help` lists all commands, `{program} help demo` describes one.
"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_of_kubectl_is_named_as_users_call_it() {
        assert!(run("kubectl metronome").said().contains("\n  kubectl metronome demo\n"));
    }
}
