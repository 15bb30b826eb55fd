#![doc = include_str!("../README.md")]

pub mod control_plane;
pub mod corner;
pub mod error;
pub mod judge;
pub mod kubelets;
pub mod proxy;

pub use control_plane::{
    Companion, Component, ControlPlane, MpiGroups, Operator, Options, Requests, Shared, Usage,
    provide_or_skip, shared, shared_with_controllers,
};
pub use corner::Corner;
pub use error::Error;
pub use judge::Judge;
pub use kubelets::{Kubelets, SimNode};
pub use metronome_testprograms::{self as binaries, Kubernetes};
pub use proxy::Proxy;
