//! The world on this machine: nodes are network namespaces, links are shaped, members are processes in groups.
//!
//! Two layers. The *substrate* does what it is told and knows nothing of jobs:
//!
//! | module | what |
//! |---|---|
//! | [`rights`] | what is possible here: [`Rights::look`](rights::Rights::look), and what is missing in words |
//! | [`state`] | [`WorldFolder`](state::WorldFolder): the lock, documents written whole, folders of members and jobs |
//! | [`hosts`], [`links`] | [`Hosts::set_up`](hosts::Hosts::set_up) from a `Cluster`; `plug`, `unplug`, `set_rate`, `cut`, `vanish`; `ports` for the agent |
//! | [`cgroup`] | [`Groups`](cgroup::Groups) and the [`Group`](cgroup::Group) of each member: cores, memory, freezing, killing |
//! | [`process`] | [`Member`](process::Member): `start`, `adopt`, `status`, `ask_to_leave`, `kill` |
//! | [`shim`] | [`shim::main`]: what the hidden subcommand of the executable does |
//! | [`logs`] | what members wrote: [`list`](logs::list), by the world's folder alone |
//! | [`cleanup`] | [`leftovers`](cleanup::leftovers) and [`clean`](cleanup::clean) |
//! | [`fault`] | every side effect in its order, with what a kill right after it leaves and how the world recovers |
//!
//! The [`world`] is what knows of jobs: it has an engine, and carries out its steps.
//!
//! A member is begun in this order, and ended in the opposite one: number ([`Hosts::free_number`](hosts::Hosts::free_number)),
//! [`plug`](hosts::Hosts::plug), [`Groups::make`](cgroup::Groups::make),
//! [`WorldFolder::member`](state::WorldFolder::member), [`Member::start`](process::Member::start) with
//! [`Spec::namespace`](process::Spec) from the plug and [`Spec::entrances`](process::Spec) from the group.
//!
//! After a crash of the scheduler: `WorldFolder::open`, read `world.json`,
//! [`Hosts::adopt`](hosts::Hosts::adopt), and for each of `WorldFolder::members` [`Member::adopt`](process::Member::adopt).
//! Where there is nothing to adopt: [`clean_but_folder`](cleanup::clean_but_folder), then set up.

pub mod cgroup;
pub mod cleanup;
mod clock;
mod error;
pub mod fault;
pub mod hosts;
pub mod links;
pub mod logs;
pub mod names;
mod patience;
pub mod process;
pub mod rights;
pub mod shim;
pub mod state;
pub mod world;

pub use error::{LocalError, Result};
