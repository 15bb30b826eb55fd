//! Golden sessions: what a user types and what the program answers. `TRYCMD=overwrite cargo test -p metronome-cli`
//! records them anew, with `--features kubernetes` those of the full build; read the difference before committing it.

/// Sessions of one build only: the full build has the commands for clusters, the default build leaves them out.
const SESSIONS_OF_THIS_BUILD: &str =
    if cfg!(feature = "kubernetes") { "tests/cmd/full/*.md" } else { "tests/cmd/default/*.md" };

#[test]
fn sessions_without_a_scenario_go_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/*.md").case(SESSIONS_OF_THIS_BUILD);
}

#[test]
fn sessions_with_a_scenario_go_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/world/*.md").case("tests/cmd/world/*.toml");
}
