//! The decisions of Metronome: worlds send events, the engine keeps state and turns a snapshot into a plan with
//! reasons, a checker passes the plan, and the world carries out its steps.
//!
//! No code in this crate reads a clock, a file or a random number: time is an argument, and the same input gives the
//! same bytes.
//!
//! | module | what belongs there |
//! |---|---|
//! | [`model`] | the nouns: units, ids, cluster, jobs, queues, policies, the plan and its steps, reports |
//! | [`observe`] | what is learned from running jobs: progress, scaling, failing nodes, slow nodes |
//! | [`network`] | the fluid network: training loops that share links, and their routes |
//! | [`traffic`] | time division of links: traffic policies and directives, the contention graph, the slowdown model, phase offsets |
//! | [`tuning`] | every number on which a decision depends, in one typed table that a policy carries |
//! | [`deadlines`] | the booking timetable: capacity that jobs with deadlines have booked ahead |
//! | [`decide`] | the decision: from a snapshot to a plan with reasons |
//! | [`check`] | the checker: every rule derived anew from the finished plan |
//! | [`engine`] | events in, decisions at their own pace, steps out, outcomes and retries; forecasts |
//! | [`journal`] | events and decisions as versioned records, and their replay |

pub mod check;
pub mod deadlines;
pub mod decide;
pub mod engine;
pub mod journal;
pub mod model;
pub mod network;
pub mod observe;
pub mod traffic;
pub mod tuning;
