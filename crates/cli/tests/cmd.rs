//! Golden sessions: what a user types and what the program answers. `TRYCMD=overwrite cargo test -p metronome-cli`
//! records them anew; read the difference before committing it.

#[test]
fn sessions_without_a_scenario_go_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/*.md");
}

#[test]
fn sessions_with_a_scenario_go_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/world/*.md").case("tests/cmd/world/*.toml");
}
