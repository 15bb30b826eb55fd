//! What members run where they are processes. A simulation has no use for it.

use crate::scenario::documents::JobShape;
use crate::scenario::values::Text;

/// The words of each role, where the job says any.
pub(super) fn of(job: &JobShape) -> Option<Vec<Vec<String>>> {
    let own = words(job.command.as_deref(), job.args.as_deref());
    let roles: Vec<Vec<String>> = match &job.roles {
        Some(roles) => {
            let of_role = roles
                .value
                .iter()
                .map(|role| words(role.value.command.as_deref(), role.value.args.as_deref()));
            of_role.map(|of_role| if of_role.is_empty() { own.clone() } else { of_role }).collect()
        }
        None => vec![own],
    };
    roles.iter().any(|words| !words.is_empty()).then_some(roles)
}

fn words(command: Option<&[Text]>, args: Option<&[Text]>) -> Vec<String> {
    let all = command.into_iter().chain(args).flatten();
    all.map(|word| word.value.clone()).collect()
}
